"""What the runner of `ltds benchmark` costs for each run besides training it: does a grid of 1,000 short runs pay it?

    python benchmarks/runner.py --out results/runner.json

One small run is trained. The other runs of a grid get a copy of its files, one after the other, as if they had been
trained in no time, so that every second is the runner's: making the cells, writing the index, reading the status of all
cells after each one and printing its line. Then the same finished runs are sent to a process that trains cells, which
answers at once: what handing over a cell costs. Seconds are those of the processor, of this process and that one.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from ltds.benchmark.grid import Grid, GridCell, cells_of
from ltds.benchmark.local import LocalExecutor
from ltds.benchmark.runner import run_cells
from ltds.cli.live import watching
from ltds.core.config import parse
from ltds.core.files import write_json
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from toy import write_dataset

SETTINGS = {
    "data": {"size": 16, "batch_size": 8},
    "backbone": {"name": "tiny"},
    "schedule": {"epochs": 2, "steps_per_epoch": 2},
    "run": {"device": "cpu"},
}


class CopyingExecutor:
    """Ends each cell by copying the files of a finished run."""

    def __init__(self, finished: RunDirectory) -> None:
        self.finished, self.spent = finished, 0.0

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        for cell in cells:
            start = time.process_time()
            shutil.copytree(self.finished.path, cell.run.path, ignore=shutil.ignore_patterns("checkpoints"))
            self.spent += time.process_time() - start
            yield cell


def grid_of(manifest: Manifest, out: Path, count: int) -> list[GridCell]:
    seeds = list(range(count))
    tables = {"data": "toy", "methods": ["agg"], "held_out": ["wax"], "seeds": seeds, "settings": SETTINGS}
    return cells_of(parse(Grid, tables), out, lambda _: manifest)


def measure(manifest: Manifest, finished: RunDirectory, out: Path, count: int) -> dict[str, float]:
    """Milliseconds of the processor for each of `count` cells."""
    start = time.process_time()
    cells = grid_of(manifest, out, count)
    made = time.process_time() - start
    executor = CopyingExecutor(finished)
    start = time.process_time()
    with redirect_stderr(io.StringIO()), watching(cells, 1) as show_ended:
        for cell in run_cells(cells, executor, out):
            show_ended(cell)
    shown = time.process_time() - start - executor.spent
    assert all(cell.run.done for cell in cells)
    return {"making_cells": 1000 * made / count, "running": 1000 * shown / count}


def handing_over(cells: list[GridCell]) -> float:
    """Milliseconds by the clock for each cell that a process is sent and answers at once, without the first."""
    answers = LocalExecutor(1).submit(cells)
    next(answers)
    start = time.perf_counter()
    for _ in answers:
        pass
    return 1000 * (time.perf_counter() - start) / (len(cells) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--out", type=Path, help="a JSON file")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        manifest = write_dataset(folder / "toy")
        (first,) = run_cells(grid_of(manifest, folder / "first", 1), LocalExecutor(1), folder / "first")
        assert first.run.done, first.run.failure()
        found: dict[str, Any] = {}
        for count in words.cells:
            found[str(count)] = {
                k: round(v, 3) for k, v in measure(manifest, first.run, folder / str(count), count).items()
            }
            print(f"{count} cells, milliseconds for each: {found[str(count)]}", flush=True)
        given = round(handing_over(grid_of(manifest, folder / "50", 50)), 3)
        print(f"handing over a cell: {given} milliseconds by the clock", flush=True)
    if words.out:
        what = "milliseconds of the runner for each run of a grid, by the number of its cells"
        write_json(words.out, {"what": what, "cells": found, "handing_over_milliseconds": given})


if __name__ == "__main__":
    main()
