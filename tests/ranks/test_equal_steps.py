"""N ranks take the same steps as one rank on the same batch, for every method, up to rounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import torch

from ltds.data.manifest import Manifest
from ltds.methods.registry import METHODS
from ranked_steps import take_steps

TESTS = Path(__file__).parents[1]
METHODS_TRIED = ("agg", "agg-embeddings", "crt", "equal", "remix", "epi-fcr", "mixstyle", "cumix", "daml", "isda")
METHODS_TRIED += ("boda-crt", "masf", "mldg", "ltds", "ltds-paper", "ltds-code", "ltds-k")
WITH_BATCHNORM = {"agg", "ltds", "mldg", "mixstyle"}
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


def test_three_ranks_take_the_steps_of_one(toy: Manifest, tmp_path: Path) -> None:
    """Without BatchNorm, and with a synchronised one; ranks agree with each other bit for bit."""
    cases = [(method, PLAIN) for method in METHODS_TRIED]
    cases += [(method, SYNCED) for method in METHODS_TRIED if method in WITH_BATCHNORM]
    ranks = steps_of_ranks(toy, tmp_path, 3, cases)
    for method, network in cases:
        alone = take_steps(toy, method, network)
        first, *others = [of_rank[f"{method}/{network}"] for of_rank in ranks]
        assert first.keys() == alone.keys()
        for name, expected in alone.items():
            torch.testing.assert_close(first[name], expected, rtol=1e-6, atol=1e-8, msg=f"{method} {network} {name}")
            for other in others:
                assert torch.equal(other[name], first[name]), (method, network, name)


def test_the_code_of_every_method_is_tried() -> None:
    assert {METHODS[name].method for name in METHODS_TRIED} == {entry.method for entry in METHODS.values()}
