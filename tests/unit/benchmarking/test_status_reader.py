"""The status of all cells, read again after each: cheap for the many that have not begun, and never stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from ltds.benchmarking import status
from ltds.benchmarking.status import IndexedCell
from ltds.cli import live
from ltds.cli.live import _StatusReader
from ltds.core.runs import RunDirectory


def test_only_cells_that_have_begun_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [IndexedCell(RunDirectory(tmp_path / "runs" / str(i)), "agg", "wax", i) for i in range(5)]
    read: list[int] = []

    def counted(cell: IndexedCell, **more: float) -> status.CellStatus:
        read.append(cell.seed)
        return status.cell_status(cell, **more)

    monkeypatch.setattr(live, "cell_status", counted)
    reader = _StatusReader(cells)
    assert [one.state for one in reader()] == ["waiting"] * 5  # there is no folder yet
    for i in (0, 1):
        cells[i].run.path.mkdir(parents=True)
        cells[i].run.config_file.write_text("")
    cells[0].run.done_file.write_text("")
    assert [one.state for one in reader()] == ["done", "running", "waiting", "waiting", "waiting"]
    assert read == [0, 1]
    cells[1].run.write_failure({"error": "dry"})
    assert [one.state for one in reader()][:2] == ["done", "failed"]
    cells[1].run.forget_failure()
    assert [one.state for one in reader()][:2] == ["done", "running"], "a failed cell may be tried again"
    assert read == [0, 1, 1, 1], "a finished cell is read once"
