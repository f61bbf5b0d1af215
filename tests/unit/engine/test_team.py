"""The threads of each rank: the cores are divided among the ranks, and given back."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import ltds
from ltds.core.errors import TrainingError
from ltds.core.processor import THREADS_CHOSEN
from ltds.data.manifest import Manifest
from ltds.engine import follow, followers, team
from ltds.engine.followers import Followers
from toy import toy_config


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with four cores, and a user who chose no number of threads."""
    for name in THREADS_CHOSEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(team, "cores", lambda: 4)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_cores")
def test_the_first_rank_takes_its_share_of_the_cores_and_returns_it(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def started(world: int) -> Iterator[Any]:
        yield SimpleNamespace(store=None)

    monkeypatch.setattr(Followers, "started", started)
    config = toy_config(toy, "agg", run={"ranks": 2})
    with team.team_for(config) as ranks:
        assert ranks.ranks.world == 2
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 4
    with pytest.raises(TrainingError), team.team_for(config):
        raise TrainingError("a rank was lost")
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_cores")
def test_a_rank_that_follows_takes_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    threads: list[int] = []
    for name in ("exit_with_parent", "retain_memory"):
        monkeypatch.setattr(follow, name, lambda *_: None)
    monkeypatch.setattr(follow, "signal", SimpleNamespace(signal=lambda *_: None, SIGINT=2, SIG_IGN=1))
    monkeypatch.setattr(follow, "follow", lambda _: threads.append(torch.get_num_threads()))
    monkeypatch.setattr(follow.os, "_exit", lambda code: threads.append(-code))
    follow.run_follower("1", "1", "2", str(tmp_path / "store"))
    assert threads == [2, 0], "half of the cores; then it ends without an error"


def test_the_threads_of_a_run_are_not_those_of_the_next(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # so that 0 leaves torch's number alone on any machine
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    settings = {"backbone.name": "tiny", "data.size": 16, "data.batch_size": 8, "run.device": "cpu"}
    settings |= {"schedule.epochs": 1, "schedule.steps_per_epoch": 1}
    try:
        computed_with = []
        for number, threads in enumerate((2, 0)):
            own = {**settings, "run.threads": threads}
            run = ltds.train(toy, method="agg", held_out="wax", out=tmp_path / str(number), settings=own)
            computed_with.append((run.read_environment()["threads"], torch.get_num_threads()))
        assert computed_with == [(2, 3), (3, 3)], "in the run, and after it"
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("devices", "chosen"), [(["lo", "eth0"], "lo"), (["en0", "lo0"], "lo0"), (["ethernet_0", "loopback_0"], None)]
)
def test_the_loopback_device_is_named_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, devices: list[str], chosen: str | None
) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.setattr(socket, "if_nameindex", lambda: list(enumerate(devices, 1)))
    with followers._local_network():
        assert os.environ.get("GLOO_SOCKET_IFNAME") == chosen
    assert "GLOO_SOCKET_IFNAME" not in os.environ
