"""Where the cells of a benchmark stand, read from their run directories alone: by the runner, or from another shell."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ltds.benchmark.grid import Cell
from ltds.core.errors import ConfigError, LtdsError
from ltds.core.files import write_json
from ltds.core.runs import RunDirectory

State = Literal["done", "failed", "running", "stopped", "waiting"]
SILENCE = 120.0  # seconds without a sign of life after which a run counts as stopped
INDEX = "cells.json"


@dataclass(frozen=True)
class Place:
    """A cell's name in the table, and its run directory."""

    run: RunDirectory
    method: str
    held_out: str
    seed: int


@dataclass(frozen=True)
class Standing:
    """A cell's state, its steps, and the metrics' summary of a finished one."""

    place: Place
    state: State
    step: int = 0
    steps: int = 0
    seconds_left: float | None = None
    summary: dict[str, float | None] | None = None
    error: str = ""


def write_index(out: Path, cells: Sequence[Cell]) -> None:
    """Note which cells the benchmark in `out` consists of."""
    write_json(
        out / INDEX,
        [{"run": c.run.path.name, "method": c.method, "held_out": c.held_out, "seed": c.seed} for c in cells],
    )


def read_index(out: Path) -> list[Place]:
    """The cells of the benchmark in `out`."""
    try:
        rows: list[dict[str, Any]] = json.loads((out / INDEX).read_text(encoding="utf-8"))
        return [Place(RunDirectory(out / "runs" / r["run"]), r["method"], r["held_out"], r["seed"]) for r in rows]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f"Expected '{out}' to be the folder of a benchmark, but its {INDEX} cannot be read ({error}). "
            "Name the folder that was given to 'ltds benchmark --out'."
        ) from error


def standing_of(place: Place, now: float | None = None) -> Standing:
    """Where one cell stands. Reads a line at the end of its journal, not the whole of it."""
    run = place.run
    if run.done:
        try:
            return Standing(place, "done", summary=run.read_metrics()["summary"])
        except (LtdsError, LookupError, TypeError):
            return Standing(place, "done")
    failure = run.failure()
    if failure is not None:
        return Standing(place, "failed", error=str(failure.get("error", "")))
    if not run.exists:
        return Standing(place, "waiting")
    step, seconds, age = run.last_line(now or time.time())
    try:
        steps = int(run.read_environment().get("steps", 0))
    except (LtdsError, TypeError, ValueError):
        steps = 0
    left = (steps - step) * seconds if seconds else None
    return Standing(place, "running" if age < SILENCE else "stopped", step, steps, left)


def time_left(standings: Sequence[Standing], jobs: int) -> float | None:
    """Seconds until all is done, from what finished and running cells of each method took; None before any sign."""
    took: dict[str, list[float]] = {}
    for standing in standings:
        seconds = standing.place.run.seconds() if standing.state == "done" else None
        if seconds:
            took.setdefault(standing.place.method, []).append(seconds)
    known = [seconds for values in took.values() for seconds in values]
    usual = statistics.fmean(known) if known else None
    total = 0.0
    for standing in standings:
        if standing.state in ("done", "failed"):
            continue
        own = took.get(standing.place.method)
        whole = statistics.fmean(own) if own else usual
        left = standing.seconds_left if standing.seconds_left is not None else whole
        if left is None:
            return None
        total += left
    return total / jobs


def means(standings: Sequence[Standing], metric: str) -> dict[str, tuple[float, int]]:
    """Per method the mean of a metric over its finished cells, a share, and how many there are."""
    values: dict[str, list[float]] = {}
    for standing in standings:
        value = (standing.summary or {}).get(metric)
        if value is not None:
            values.setdefault(standing.place.method, []).append(value)
    return {method: (statistics.fmean(found), len(found)) for method, found in values.items()}
