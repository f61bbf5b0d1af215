"""Benchmarks that survive: a killed runner, a killed worker, a failing cell. Real processes, real kills."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmark_workers import workers
from command_line import PROGRAM, Command
from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import run_cell
from ltds.benchmarking.runner import run_cells
from ltds.benchmarking.status import CellStatus, cell_status, means, read_index, time_left
from ltds.core.errors import ConfigError, DataError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.start import train_new_run
from ltds.evaluation.table import PredictionTable
from toy import toy_config, write_dataset


def options(toy: Manifest, out: Path, epochs: int = 3, methods: str = "agg,dc") -> list[str]:
    settings = [
        "data.size=16",
        "data.batch_size=8",
        "backbone.name=tiny",
        "schedule.steps_per_epoch=2",
        "run.device=cpu",
    ]
    given = [f"--set={setting}" for setting in [*settings, f"schedule.epochs={epochs}"]]
    where = ["--data", str(toy.root), "--held-out", "wax", "--seeds", "0", "--methods", methods, "--out", str(out)]
    return ["benchmark", *where, "--jobs", "2", *given]


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(happened: Callable[[], bool], seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


def runs(out: Path) -> dict[str, RunDirectory]:
    return {path.name: RunDirectory(path) for path in sorted((out / "runs").iterdir())}


def logits(run: RunDirectory) -> np.ndarray:
    return PredictionTable.load(run.predictions_file("test")).logits


def steps(run: RunDirectory) -> list[int]:
    return [row["step"] for row in run.read_journal() if row["kind"] == "step"]


class Here:
    """Trains cells in this process, one after the other."""

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        for cell in cells:
            run_cell(cell.run.path, cell.config.to_dict(), threads=1)
            yield cell


@pytest.fixture(scope="module")
def straight(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of two cells of 60 epochs that nobody disturbed."""
    out = tmp_path_factory.mktemp("straight")
    assert start(*options(toy, out, epochs=60)).wait() == 0
    return out


def assert_as_undisturbed(out: Path, straight: Path, cells: int) -> None:
    assert len(runs(out)) == cells
    for name, run in runs(out).items():
        assert run.done
        assert steps(run) == list(range(1, 121))
        np.testing.assert_array_equal(logits(run), logits(RunDirectory(straight / "runs" / name)))


def test_a_killed_runner_goes_on_and_leaves_nobody_behind(
    toy: Manifest, tmp_path: Path, straight: Path, command: Command
) -> None:
    words = options(toy, tmp_path, epochs=60, methods="dc")
    runner = start(*words)
    wait_for(lambda: any(tmp_path.glob("runs/*/checkpoints/last.safetensors")))
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    (run,) = runs(tmp_path).values()
    assert not run.done, "the runner was killed too late to show anything"
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "FAILED" not in done.stderr
    assert_as_undisturbed(tmp_path, straight, cells=1)


def test_a_killed_worker_is_replaced(toy: Manifest, tmp_path: Path, straight: Path) -> None:
    runner = start(*options(toy, tmp_path, epochs=60))
    wait_for(lambda: len(list(tmp_path.glob("runs/*/checkpoints/last.safetensors"))) == 2)
    victim = workers(runner.pid)[0]
    os.kill(victim, signal.SIGKILL)
    assert runner.wait(timeout=480) == 0
    assert_as_undisturbed(tmp_path, straight, cells=2)


def test_finished_cells_are_not_repeated_and_failures_stop_nobody(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    data = tmp_path / "data"
    words = options(toy, tmp_path, methods="agg,failing_method:Failing")
    monkeypatch.setenv("PYTHONPATH", str(data))  # for the processes that train
    monkeypatch.syspath_prepend(data)
    data.mkdir()
    (data / "failing_method.py").write_text(
        "from ltds.methods.agg import Agg\n"
        "class Failing(Agg):\n"
        "    'Fails at its third step.'\n"
        "    def loss(self, batch, clock):\n"
        "        if clock.step == 2:\n"
        "            raise RuntimeError('the well is dry')\n"
        "        return super().loss(batch, clock)\n"
    )

    first = command(*words)
    assert first.returncode == 1
    assert "RuntimeError: the well is dry" in first.stderr
    assert "1 of 2 runs failed. Try them again with --retry-failed." in first.stderr
    agg, failing = runs(tmp_path).values()
    assert agg.done
    assert not failing.done
    assert json.loads(failing.failed_file.read_text())["traceback"].startswith("Traceback")
    finished = agg.done_file.stat().st_mtime_ns

    second = command(*words)  # a failed cell is left alone
    assert (second.returncode, len(failing.read_journal())) == (1, 3)

    (data / "failing_method.py").write_text("from ltds.methods.agg import Agg\nclass Failing(Agg):\n    'Mended.'\n")
    third = command(*words, "--retry-failed")
    assert third.returncode == 0, third.stderr
    assert failing.done
    assert failing.failure() is None
    assert steps(failing) == [1, 2, 3, 4, 5, 6]
    assert agg.done_file.stat().st_mtime_ns == finished


def test_a_dataset_that_cannot_be_used_fails_its_own_cells_alone(tmp_path: Path) -> None:
    good, bad = (write_dataset(tmp_path / name) for name in ("good", "bad"))
    (bad.root / bad.paths[0]).write_bytes(b"no image")
    cells = [GridCell(RunDirectory(tmp_path / data.root.name / "run"), toy_config(data), "") for data in (bad, good)]
    assert list(run_cells(cells, Here(), tmp_path / "out")) == cells
    assert cells[1].run.done
    failure = cells[0].run.failure()
    assert failure is not None
    assert failure["error"].startswith("DataError: 1 of 138 images")
    cells[0].run.forget_failure()
    with pytest.raises(DataError, match=re.escape(bad.paths[0])):
        list(run_cells(cells, Here(), tmp_path / "out"))  # nothing else is left to train
    assert cells[0].run.failure() is None


def test_a_damaged_record_of_a_failure_is_still_a_failure(toy: Manifest, tmp_path: Path) -> None:
    cell = GridCell(RunDirectory(tmp_path / "run"), toy_config(toy), "")
    cell.run.path.mkdir()
    cell.run.failed_file.write_text("")
    assert list(run_cells([cell], Here(), tmp_path)) == []
    assert cell.run.failure() == {"error": "FAILED.json cannot be read"}


def test_a_first_phase_is_trained_once_with_the_results_of_training_it_twice(
    toy: Manifest, tmp_path: Path, command: Command
) -> None:
    done = command(*options(toy, tmp_path / "both", methods="crt,agg"))
    assert done.returncode == 0, done.stderr
    agg, behind = runs(tmp_path / "both").values()
    alone = RunDirectory(tmp_path / "alone")
    train_new_run(alone, resolve(behind.read_config()), toy)
    assert behind.read_environment()["first_phase"]["run"] == agg.path.name
    assert "first_phase" not in alone.read_environment()
    np.testing.assert_array_equal(logits(behind), logits(alone))
    assert behind.best_checkpoint.read_bytes() == alone.best_checkpoint.read_bytes()


def test_status(straight: Path, tmp_path: Path, command: Command) -> None:
    shown = command("benchmark", "--status", str(straight))
    assert shown.returncode == 0, shown.stderr
    assert "2 done" in shown.stdout
    assert {line.split()[1] for line in shown.stdout.splitlines() if line.startswith("│")} == {"agg", "dc"}
    wrong = command("benchmark", "--status", str(tmp_path))
    assert wrong.returncode == 2
    assert "Expected" in wrong.stderr


def test_where_cells_stand(straight: Path) -> None:
    cells = read_index(straight)
    done = [cell_status(cell) for cell in cells]
    assert [s.state for s in done] == ["done", "done"]
    average = means(done, "acc")
    assert average["agg"] == (done[0].summary["acc"], 1)  # type: ignore[index]
    assert time_left(done, 2) == 0
    run = cells[0].run
    took = run.seconds()
    waiting = CellStatus(cells[0], "waiting")
    running = CellStatus(cells[0], "running", step=1, steps=5, seconds_left=40.0)
    assert time_left([done[0], waiting, running], 1) == pytest.approx(took + 40.0)
    assert time_left([waiting], 2) is None


def test_a_run_without_a_sign_of_life_counts_as_stopped(straight: Path, tmp_path: Path) -> None:
    import shutil

    cell = read_index(straight)[0]
    copy = RunDirectory(tmp_path / "copy")
    shutil.copytree(cell.run.path, copy.path)
    copy.done_file.unlink()
    moved = type(cell)(copy, cell.method, cell.held_out, cell.seed)
    last = copy.journal_file.stat().st_mtime
    status = cell_status(moved, now=last + 10)
    assert (status.state, status.step, status.steps) == ("running", 120, 120)
    assert cell_status(moved, now=last + 1000).state == "stopped"


def test_mistakes_on_the_command_line(toy: Manifest, command: Command) -> None:
    nothing = command("benchmark")
    assert (nothing.returncode, "Give it as: --data bestiary --methods agg,ltds" in nothing.stderr) == (2, True)
    words = command("benchmark", "--data", str(toy.root), "--methods", "agg", "--seeds", "zero")
    assert (words.returncode, "'zero'" in words.stderr) == (2, True)


def test_an_index_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text("[{")
    with pytest.raises(ConfigError, match=r"cells\.json cannot be read"):
        read_index(tmp_path)
