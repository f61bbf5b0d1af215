"""N ranks take the same steps as one rank on the same batch, for every method, up to rounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ltds.data.manifest import Manifest
from ltds.methods.registry import METHODS
from ranked_steps import take_steps

TESTS = Path(__file__).parents[1]
SAME_CODE = {f"ltds-{letter}" for letter in "abcdefgij"} | {"bsce", "dc", "la", "la-posthoc", "epi-fcr-bsce"}
PLAIN, SYNCED = "ranked_steps:PlainNet", "tiny"


def steps_of_ranks(toy: Manifest, folder: Path, world: int, cases: list[tuple[str, str]]) -> list[dict[str, dict]]:
    """What `take_steps` returns in each of `world` real processes, by method and network."""
    job = {"world": world, "store": str(folder / "store"), "root": str(toy.root), "cases": cases}
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    environment["GLOO_SOCKET_IFNAME"] = "lo"
    processes = [
        subprocess.Popen(
            [sys.executable, TESTS / "ranked_steps.py", json.dumps({**job, "rank": rank, "out": str(folder / "out")})],
            env=environment,
            stderr=subprocess.PIPE,
        )
        for rank in range(world)
    ]
    for process in processes:
        errors = process.communicate()[1].decode()
        assert process.returncode == 0, errors
    return [torch.load(folder / f"out-{rank}.pt") for rank in range(world)]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_take_the_steps_of_one(toy: Manifest, tmp_path: Path, world: int) -> None:
    """Without BatchNorm, and with a synchronised one; ranks agree with each other bit for bit."""
    methods = [m for m in METHODS if m not in SAME_CODE] if world == 2 else ["agg", "ltds", "mldg", "masf", "daml"]
    cases = [(method, network) for method in methods for network in (PLAIN, SYNCED)]
    ranks = steps_of_ranks(toy, tmp_path, world, cases)
    for method, network in cases:
        alone = take_steps(toy, method, network)
        first, *others = [of_rank[f"{method}/{network}"] for of_rank in ranks]
        assert first.keys() == alone.keys()
        for name, expected in alone.items():
            torch.testing.assert_close(first[name], expected, rtol=1e-6, atol=1e-8, msg=f"{method} {network} {name}")
            for other in others:
                assert torch.equal(other[name], first[name]), (method, network, name)
