"""A benchmark on a real Ray cluster of two nodes, one of which is lost on the way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.cluster import RayExecutor, _unpack
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.runner import run_cells
from ltds.core.config import parse
from ltds.data.manifest import Manifest

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ltds[ray]'")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head that trains nothing, and two nodes of one core."""
    from ray.cluster_utils import Cluster as Nodes

    cluster = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    cluster.first, cluster.second = (cluster.add_node(num_cpus=1) for _ in range(2))
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def cells(toy: Manifest, out: Path, epochs: int, seeds: list[int], ranks: int = 1) -> list[GridCell]:
    settings = {
        "data": {"size": 16, "batch_size": 8},
        "backbone": {"name": "tiny"},
        "schedule": {"epochs": epochs, "steps_per_epoch": 2},
        "run": {"device": "cpu", "ranks": ranks},
    }
    grid = {"data": "toy", "methods": ["agg"], "held_out": ["wax"], "seeds": seeds, "settings": settings}
    return cells_of(parse(Grid, grid), out, lambda _: toy)


def test_no_cell_is_lost_or_doubled_when_a_node_is(toy: Manifest, tmp_path: Path, nodes: Any) -> None:
    wanted = cells(toy, tmp_path, 120, [0, 1, 2])
    over: list[GridCell] = []
    submitted = run_cells(wanted, RayExecutor("auto"), tmp_path)
    thread = threading.Thread(target=lambda: over.extend(submitted))
    thread.start()
    until = time.monotonic() + 240
    while len(list(tmp_path.glob("runs/*/checkpoints/last.safetensors"))) < 2:
        assert time.monotonic() < until, "two runs did not start in time"
        time.sleep(0.1)
    nodes.remove_node(nodes.second, allow_graceful=False)
    thread.join(timeout=480)
    assert not thread.is_alive()
    assert sorted(cell.seed for cell in over) == [0, 1, 2]
    for cell in wanted:
        assert cell.run.done
        assert cell.run.failure() is None
        steps = [row["step"] for row in cell.run.read_journal() if row["kind"] == "step"]
        assert steps == list(range(1, 241))


def test_runs_are_fetched_back_from_the_nodes_disks(toy: Manifest, tmp_path: Path, nodes: Any) -> None:
    (bare,) = cells(toy, tmp_path, 2, [5])
    cell = replace(bare, plan={"choices": []})
    assert [c.run.path for c in run_cells([cell], RayExecutor("auto", fetch=True), tmp_path)] == [cell.run.path]
    assert cell.run.done
    assert cell.run.read_metrics()["summary"]["acc"] is not None
    assert json.loads(cell.run.plan_file.read_text()) == cell.plan
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [cell.run.path.name]


def test_a_run_of_two_ranks_reserves_a_core_for_each(toy: Manifest, tmp_path: Path, nodes: Any) -> None:
    """The other nodes have one core: the run has to wait for, and takes, the one that has two."""
    node = nodes.add_node(num_cpus=2)
    nodes.wait_for_nodes()
    total = ray.cluster_resources()["CPU"]
    (cell,) = cells(toy, tmp_path, 10, [6], ranks=2)
    over: list[GridCell] = []
    thread = threading.Thread(target=lambda: over.extend(run_cells([cell], RayExecutor("auto"), tmp_path)))
    thread.start()
    free = total
    while thread.is_alive():
        free = min(free, ray.available_resources().get("CPU", 0.0))
        thread.join(timeout=0.05)
    nodes.remove_node(node)
    assert [c.run.path for c in over] == [cell.run.path]
    assert cell.run.failure() is None
    assert cell.run.done
    assert free == total - 2
    assert cell.run.read_environment()["ranks"] == 2
    assert cell.run.read_config()["run"]["threads"] == 1


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(tarfile.OutsideDestinationError):
        _unpack(packed.getvalue(), tmp_path / "runs" / "one")
    assert [p.name for p in tmp_path.rglob("*")] == ["runs"]


def test_a_fetched_run_has_the_permissions_that_the_umask_says(tmp_path: Path) -> None:
    import io
    import os
    import tarfile

    sent, packed = tmp_path / "sent", io.BytesIO()
    sent.mkdir(mode=0o700)
    (sent / "log.jsonl").write_text("{}\n")
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(sent, arcname=".")
    before = os.umask(0o027)
    try:
        _unpack(packed.getvalue(), tmp_path / "runs" / "one")
        _unpack(packed.getvalue(), tmp_path / "runs" / "one")  # over an earlier attempt
    finally:
        os.umask(before)
    assert (tmp_path / "runs" / "one").stat().st_mode & 0o777 == 0o750
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["one"]
    assert (tmp_path / "runs" / "one" / "log.jsonl").read_text() == "{}\n"
