"""How much time a benchmark says is left: from the runs of this call, never from those of earlier sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ltds.benchmarking.status import CellStatus, IndexedCell, cell_status, time_left
from ltds.cli.live import _line, _StatusReader
from ltds.core.runs import RunDirectory

NOW = 1_000_000.0


def cell(folder: Path, name: str, method: str = "agg") -> IndexedCell:
    return IndexedCell(RunDirectory(folder / name), method, "wax", 0)


def finished(folder: Path, name: str, began: float, ended: float, method: str = "agg") -> IndexedCell:
    """A finished run whose files say when it began and ended."""
    run = cell(folder, name, method).run
    run.path.mkdir()
    run.config_file.write_text("")
    run.done_file.write_text("")
    os.utime(run.config_file, (began, began))
    os.utime(run.done_file, (ended, ended))
    return cell(folder, name, method)


def training(folder: Path, name: str, step: int, steps: int | None, seconds: float) -> IndexedCell:
    """A run that has just written the line of `step`."""
    run = cell(folder, name).run
    run.path.mkdir()
    run.config_file.write_text("")
    run.write_environment({} if steps is None else {"steps": steps})
    run.journal_file.write_text(json.dumps({"kind": "step", "step": step, "seconds": seconds}) + "\n")
    os.utime(run.journal_file, (NOW, NOW))
    return cell(folder, name)


def test_only_runs_of_this_call_count(tmp_path: Path) -> None:
    earlier = finished(tmp_path, "earlier", NOW - 50_000, NOW - 10_000)  # perhaps interrupted for hours
    resumed = finished(tmp_path, "resumed", NOW - 9_000, NOW + 50)
    ours = finished(tmp_path, "ours", NOW + 10, NOW + 40)
    waiting = [CellStatus(cell(tmp_path, name), "waiting") for name in ("a", "b")]
    statuses = [cell_status(one, since=NOW) for one in (earlier, resumed, ours)]
    assert [status.seconds for status in statuses] == [0, 0, 30]
    assert time_left([*statuses, *waiting], jobs=2) == 30
    assert time_left([*statuses[:2], *waiting], jobs=2) is None  # nothing of this call tells yet
    assert cell_status(earlier).seconds == 40_000


def test_it_is_never_negative(tmp_path: Path) -> None:
    copied = finished(tmp_path, "copied", NOW + 20_000, NOW)  # the copy is younger than the end of the run
    beyond = training(tmp_path, "beyond", step=30, steps=20, seconds=2.0)
    unknown = training(tmp_path, "unknown", step=30, steps=None, seconds=2.0)
    assert cell_status(copied).seconds == 0
    assert cell_status(beyond, NOW).seconds_left == 0
    assert cell_status(unknown, NOW).seconds_left is None
    assert time_left([cell_status(copied), cell_status(beyond, NOW)], jobs=1) == 0


def test_a_running_cell_tells_until_one_has_finished(tmp_path: Path) -> None:
    running = cell_status(training(tmp_path, "running", step=5, steps=20, seconds=2.0), NOW)
    waiting = CellStatus(cell(tmp_path, "waiting"), "waiting")
    other = CellStatus(cell(tmp_path, "other", "dc"), "waiting")
    assert (running.seconds_left, running.seconds_of_all) == (30, 40)
    assert time_left([running, waiting, other], jobs=1) == 30 + 40 + 40
    done = cell_status(finished(tmp_path, "done", NOW, NOW + 100, "dc"))
    assert time_left([done, running, waiting, other], jobs=1) == 30 + 40 + 100


def test_more_jobs_do_not_shorten_the_last_cells(tmp_path: Path) -> None:
    """One cell with 600 s left takes 600 s with 8 jobs, too; with more cells the jobs share the work."""
    last = cell_status(training(tmp_path, "last", step=100, steps=400, seconds=2.0), NOW)
    short = cell_status(training(tmp_path, "short", step=350, steps=400, seconds=2.0), NOW)
    assert (last.seconds_left, short.seconds_left) == (600, 100)
    assert time_left([last], jobs=8) == 600
    assert time_left([last, short], jobs=8) == 600
    assert time_left([last, *[short] * 8], jobs=2) == (600 + 800) / 2


def test_the_line_of_a_continued_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = finished(tmp_path, "earlier", NOW - 50_000, NOW - 10_000)
    reader = _StatusReader([earlier, cell(tmp_path, "later")])
    _line(earlier, reader(), jobs=1)  # type: ignore[arg-type]
    assert capsys.readouterr().err.startswith("[1/2] agg held out wax seed 0")
