"""What the runner of `ltds benchmark` costs for each run besides training it: does a grid of 1,000 short runs pay it?

    python benchmarks/runner.py --out results/runner.json

One small run is trained. The other runs of a grid get a copy of its files, one after the other, as if they had been
trained in no time, so that every second is the runner's: making the cells, writing the index, reading the status of all
cells after each one and printing its line. Then a grid of the most cells is run whole, by processes that sleep instead
of training: what a cell costs in this process and in those, from which the start of a process is taken off. A cell that
sleeps needs no processor, so its length does not matter, and 1,000 cells of a second need not take 1,000 seconds.
Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from ltds.benchmarking import local
from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.local import LocalExecutor
from ltds.benchmarking.runner import run_cells
from ltds.cli.live import watching
from ltds.core.config import parse
from ltds.core.files import write_json
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from toy import write_dataset

JOBS, ASLEEP = 2, 0.05  # processes, and seconds that a cell sleeps
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


def whole_grid(manifest: Manifest, finished: RunDirectory, out: Path, count: int, search_all: bool = False) -> float:
    """Seconds of the processor for a grid of `count` cells that sleep, in this process and in those that it starts.

    `search_all`: as it was before, all that torch consists of is searched for garbage after each cell.
    """
    os.environ |= {"LTDS_FINISHED": str(finished.path), "LTDS_SEARCH_ALL": "yes" if search_all else ""}
    before = _processor_seconds()
    cells = grid_of(manifest, out, count)
    sleeping, quiet = mock.patch.object(local, "_child", sleeping_child), redirect_stderr(io.StringIO())
    with sleeping, quiet, watching(cells, JOBS) as show_ended:
        for cell in run_cells(cells, LocalExecutor(JOBS), out):
            show_ended(cell)
    assert all(cell.run.done for cell in cells)
    return _processor_seconds() - before


def sleeping_child(parent: int, connection: Connection, threads: int) -> None:
    """As the process of an executor, but a cell sleeps and then has the files of a finished run."""
    finished = Path(os.environ["LTDS_FINISHED"])

    def sleep(path: Path, config: dict[str, Any], threads: int) -> None:
        time.sleep(ASLEEP)
        shutil.copytree(finished, path, ignore=shutil.ignore_patterns("checkpoints"))

    local.run_cell = sleep
    if os.environ["LTDS_SEARCH_ALL"]:
        gc.freeze = lambda: None
    local._child(parent, connection, threads)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
        most, some = max(words.cells), min(words.cells)
        grids = {"start": (JOBS, False), "some": (some, False), "searched": (some, True), "most": (most, False)}
        spent = {
            name: whole_grid(manifest, first.run, folder / name, count, search_all)
            for name, (count, search_all) in grids.items()
        }
        whole = {
            "seconds_to_start": round(spent["start"], 1),
            **{
                f"milliseconds_each_of_{grids[name][0]}{', all searched' if grids[name][1] else ''}": round(
                    1000 * (spent[name] - spent["start"]) / (grids[name][0] - JOBS), 1
                )
                for name in ("some", "searched", "most")
            },
        }
        print(f"cells that sleep, {JOBS} processes: {whole}", flush=True)
    if words.out:
        what = "milliseconds of the processor that the runner takes for each run of a grid, by the number of its cells"
        write_json(words.out, {"what": what, "cells": found, "jobs": JOBS, "whole_grid": whole})


if __name__ == "__main__":
    main()
