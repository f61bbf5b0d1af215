"""Processes that train one cell after the other: few starts, and a crash that costs only its own cell."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.local import LocalExecutor
from ltds.benchmarking.run_cell import run_cell
from ltds.core.config import parse
from ltds.core.processor import THREADS_CHOSEN
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.loop import train
from ltds.engine.start import record, resume_run

METHODS = """
import os, pathlib, time
from ltds.methods.agg import Agg

class Noted(Agg):
    "Notes which process trains it."
    def loss(self, batch, clock):
        with open(pathlib.Path(__file__).with_name("processes.txt"), "a") as file:
            file.write(f"{os.getpid()}\\n")
        return super().loss(batch, clock)

class Dying(Agg):
    "Ends its process at its second step."
    def loss(self, batch, clock):
        if clock.step == 1:
            os._exit(3)
        return super().loss(batch, clock)

class DyingOnce(Agg):
    "Waits for a file, then ends its process, but only once."
    def loss(self, batch, clock):
        folder = pathlib.Path(__file__).parent
        while not (folder / "go").exists():
            time.sleep(0.02)
        if not (folder / "died").exists():
            (folder / "died").touch()
            os._exit(3)
        return super().loss(batch, clock)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mortal_methods.py").write_text(METHODS)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def grid(toy: Manifest, methods: tuple[str, ...], seeds: tuple[int, ...]) -> Grid:
    settings = {
        "data": {"size": 16, "batch_size": 8},
        "backbone": {"name": "tiny"},
        "schedule": {"epochs": 2, "steps_per_epoch": 2},
        "run": {"device": "cpu"},
    }
    names = tuple(f"mortal_methods:{name}" for name in methods)
    return Grid(data=str(toy.root), methods=names, held_out=("wax",), seeds=seeds, settings=settings)


def test_one_process_trains_many_cells(toy: Manifest, folder: Path) -> None:
    cells = cells_of(grid(toy, ("Noted",), (0, 1, 2)), folder, lambda _: toy)
    ended = [cell.run.path for cell in LocalExecutor(1).submit(cells)]
    assert ended == [cell.run.path for cell in cells]
    assert all(cell.run.done for cell in cells)
    assert len(set((folder / "processes.txt").read_text().split())) == 1


def test_a_process_that_dies_costs_only_its_cell(toy: Manifest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltds.benchmarking.local.RETRIES", 1)
    cells = cells_of(grid(toy, ("Dying", "Noted"), (0,)), folder, lambda _: toy)
    assert len(list(LocalExecutor(1).submit(cells))) == 2
    dying, noted = (cell.run for cell in cells)
    assert noted.done
    failure = dying.failure()
    assert failure is not None
    assert failure["error"].startswith("The process ended with exit code 3, 2 times.")


def test_several_processes_are_waited_for_on_windows_too(
    toy: Manifest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sockets_only() -> None:
        raise OSError("[WinError 10038] An operation was attempted on something that is not a socket")

    monkeypatch.setattr("multiprocessing.connection._WaitSelector", sockets_only)
    cells = cells_of(grid(toy, ("Noted",), (0, 1)), folder, lambda _: toy)
    assert {cell.run.path for cell in LocalExecutor(2).submit(cells)} == {cell.run.path for cell in cells}
    assert all(cell.run.done for cell in cells)


def test_a_process_that_dies_without_a_cell_gets_no_other(toy: Manifest, folder: Path) -> None:
    cells = cells_of(grid(toy, ("Noted", "DyingOnce"), (0,)), folder, lambda _: toy)
    ended = LocalExecutor(2).submit(cells)
    assert next(ended) is cells[0]
    os.kill(int((folder / "processes.txt").read_text().split()[0]), signal.SIGKILL)
    time.sleep(0.5)  # in which its end is noticed
    (folder / "go").touch()
    assert list(ended) == [cells[1]]
    assert all(cell.run.done for cell in cells)


def test_cells_share_the_cores_unless_the_settings_say_how_many_threads(toy: Manifest, folder: Path) -> None:
    shared = grid(toy, ("Noted",), (0,))
    said = shared.model_copy(update={"seeds": (1,), "settings": {**shared.settings, "run": {"threads": 3}}})
    (mine,), (theirs,) = (cells_of(each, folder, lambda _: toy) for each in (shared, said))
    for cell in (mine, theirs):
        run_cell(cell.run.path, cell.config.to_dict(), threads=2)
    assert mine.run.read_config()["run"]["threads"] == 2
    assert theirs.run.read_config()["run"]["threads"] == 3


def test_jobs_share_the_cores_unless_the_user_chose_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltds.benchmarking.local.cores", lambda: 8)
    for name in THREADS_CHOSEN:
        monkeypatch.delenv(name, raising=False)
    assert [LocalExecutor(jobs).threads for jobs in (1, 3, 16)] == [8, 2, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert LocalExecutor(1).threads == 1


def test_a_continued_cell_is_computed_as_the_new_command_asks(toy: Manifest, folder: Path) -> None:
    """The threads stay, because rounding depends on them; the numbers of the run do not depend on the rest."""
    first = grid(toy, ("Noted",), (0,))
    more = first.model_copy(update={"settings": {**first.settings, "run": {"frechet_every": 1, "threads": 1}}})
    (begun,), (continued,) = (cells_of(each, folder, lambda _: toy) for each in (first, more))
    assert begun.run.path == continued.run.path
    session = assemble(begun.config, toy)
    with begun.run.locked():
        record(begun.run, session)
        train(session, begun.run, stop_after=2)
    run_cell(continued.run.path, continued.config.to_dict(), threads=2)
    assert begun.run.failure() is None
    assert begun.run.done
    kinds = [row["kind"] for row in begun.run.read_journal()]
    assert kinds.count("frechet") == 1, "after the second of two epochs"
    assert begun.run.read_config()["run"]["threads"] == begun.config.run.threads


def test_a_run_of_a_grid_with_a_relative_path_is_resumed_from_another_folder(
    toy: Manifest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.eye(len(toy.classes), 8, dtype=np.float32)[toy.labels]
    write_features(folder / "vectors.npz", vectors, toy.paths)

    def cell_with(features: str) -> GridCell:
        settings = {"data": {"features": features, "batch_size": 8}, "schedule": {"epochs": 2, "steps_per_epoch": 2}}
        words = {"data": str(toy.root), "methods": ["agg"], "held_out": ["wax"], "seeds": [0]}
        (cell,) = cells_of(parse(Grid, {**words, "settings": settings}), folder, lambda _: toy)
        return cell

    monkeypatch.chdir(folder)
    cell = cell_with("vectors.npz")
    assert cell.config.data.features == str(folder / "vectors.npz")
    assert cell.run.path == cell_with(str(folder / "vectors.npz")).run.path, "the path is no part of the name"
    session = assemble(cell.config, toy)
    with cell.run.locked():
        record(cell.run, session)
        train(session, cell.run, stop_after=2)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    resume_run(cell.run)
    assert cell.run.done
