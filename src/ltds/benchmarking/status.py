"""The status of a benchmark's cells, read from the run directories alone, so that any process can ask for it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ltds.core.errors import ConfigError, LtdsError
from ltds.core.files import write_json
from ltds.core.runs import RunDirectory

if TYPE_CHECKING:  # a grid knows the methods, and these need torch
    from ltds.benchmarking.cells import GridCell

CellState = Literal["done", "failed", "running", "stopped", "waiting"]
SILENCE = 120.0  # seconds without a new line in its journal after which a run counts as stopped
INDEX = "cells.json"
METRICS = (("acc_u", "Acc-U"), ("acc", "Acc"), ("h_oracle", "H oracle"))


@dataclass(frozen=True)
class IndexedCell:
    """A cell as the index of the benchmark lists it: its labels and its run directory."""

    run: RunDirectory
    method: str
    held_out: str
    seed: int

    @classmethod
    def of(cls, cell: GridCell) -> IndexedCell:
        return cls(cell.run, cell.method, cell.held_out, cell.seed)

    def __str__(self) -> str:
        return f"{self.method} held out {self.held_out or 'none'} seed {self.seed}"


@dataclass(frozen=True)
class CellStatus:
    """State and progress of a cell; when it is done, the summary of its metrics and the seconds it took, if known."""

    cell: IndexedCell
    state: CellState
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    summary: dict[str, float | None] | None = None
    error: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """In a few words, how a run that has ended did."""
        if not self.summary:
            return f"FAILED: {self.error}"
        values = [(name, self.summary.get(key)) for key, name in METRICS]
        return ", ".join(f"{name} {100 * value:.1f}" for name, value in values if value is not None)

    @property
    def seconds_of_all(self) -> float | None:
        """How long the whole run takes; an estimate while it is running, None where nothing tells."""
        if self.state == "done":
            return self.seconds or None
        left = self.steps - self.step
        return self.seconds_left * self.steps / left if self.seconds_left is not None and left > 0 else None


def write_index(out: Path, cells: Sequence[GridCell]) -> None:
    """Write down which cells the benchmark in `out` consists of."""
    write_json(
        out / INDEX,
        [{"run": c.run.path.name, "method": c.method, "held_out": c.held_out, "seed": c.seed} for c in cells],
    )


def read_index(out: Path) -> list[IndexedCell]:
    """The cells of the benchmark in `out`."""
    try:
        rows: list[dict[str, Any]] = json.loads((out / INDEX).read_text(encoding="utf-8"))
        return [IndexedCell(RunDirectory(out / "runs" / r["run"]), r["method"], r["held_out"], r["seed"]) for r in rows]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"Expected '{out}' to be the folder of a benchmark, but its {INDEX} cannot be read ({error}). "
            "Name the folder that the benchmark writes its output to."
        ) from error


def cell_status(cell: IndexedCell, now: float | None = None, since: float = 0.0) -> CellStatus:
    """The status of one cell. Reads only the last line of its journal.

    `since`: a time before which a run must not have begun if how long it took is to count; a run that an earlier
    session began may have been interrupted for hours, or copied.
    """
    run = cell.run
    if run.done:
        seconds = run.seconds(since)
        try:
            return CellStatus(cell, "done", summary=run.read_metrics()["summary"], seconds=seconds)
        except (LtdsError, LookupError, TypeError):
            return CellStatus(cell, "done", seconds=seconds)
    failure = run.failure()
    if failure is not None:
        return CellStatus(cell, "failed", error=str(failure.get("error", "")))
    if not run.exists:
        return CellStatus(cell, "waiting")
    step, seconds, age = run.last_line(now or time.time())
    try:
        steps = int(run.read_environment().get("steps", 0))
    except (LtdsError, TypeError, ValueError):
        steps = 0
    left = max(0, steps - step) * seconds if seconds and steps else None
    return CellStatus(cell, "running" if age < SILENCE else "stopped", step, steps, left)


def time_left(statuses: Sequence[CellStatus], jobs: int) -> float | None:
    """Estimated seconds until all cells are done, from the times of finished and running ones; None if unknown.

    What is not known of a method is taken from the finished runs of all methods, then from the running ones. A cell is
    trained by one job: the others cannot make its end come sooner.
    """
    finished = _seconds_by_method(status for status in statuses if status.state == "done")
    running = _seconds_by_method(status for status in statuses if status.state == "running")
    of_any = _all(finished) or _all(running)
    of_cells = [0.0]
    for status in statuses:
        if status.state in ("done", "failed"):
            continue
        method = status.cell.method
        whole_runs = finished.get(method) or running.get(method) or of_any
        left = statistics.fmean(whole_runs) if whole_runs else None
        left = status.seconds_left if status.seconds_left is not None else left
        if left is None:
            return None
        of_cells.append(left)
    return max(sum(of_cells) / jobs, *of_cells)


def _seconds_by_method(statuses: Iterable[CellStatus]) -> dict[str, list[float]]:
    """For each method, how long its runs take, as far as that is known."""
    seconds: dict[str, list[float]] = {}
    for status in statuses:
        if status.seconds_of_all is not None:
            seconds.setdefault(status.cell.method, []).append(status.seconds_of_all)
    return seconds


def _all(seconds: dict[str, list[float]]) -> list[float]:
    return [one for values in seconds.values() for one in values]


def means(statuses: Sequence[CellStatus], metric: str) -> dict[str, tuple[float, int]]:
    """For each method: the mean of a metric over its finished cells, from 0 to 1, and the number of these cells."""
    values: dict[str, list[float]] = {}
    for status in statuses:
        value = (status.summary or {}).get(metric)
        if value is not None:
            values.setdefault(status.cell.method, []).append(value)
    return {method: (statistics.fmean(numbers), len(numbers)) for method, numbers in values.items()}
