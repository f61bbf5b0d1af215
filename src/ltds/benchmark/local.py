"""Cells on this machine: one process per cell, so that a crash of one does not affect the others."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from ltds.benchmark.grid import GridCell
from ltds.benchmark.run_cell import fail, run_cell
from ltds.core.worker import exit_with_parent

RETRIES = 2  # of a process that was killed or ran out of memory, and so recorded no error


@dataclass
class _CellProcess:
    cell: GridCell
    process: SpawnProcess
    crashes: int


class LocalExecutor:
    """`jobs` processes at a time, which share the machine's cores equally."""

    def __init__(self, jobs: int, cores: int | None = None) -> None:
        self.jobs = jobs
        self.threads = max(1, (cores or os.cpu_count() or 1) // jobs)

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        """Yield each cell when it has ended, done or failed. Closing early ends the processes; checkpoints stay."""
        waiting = deque((cell, 0) for cell in cells)
        running: dict[int, _CellProcess] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = self._start(*waiting.popleft())
                    running[job.process.sentinel] = job
                for sentinel in wait(list(running)):
                    assert isinstance(sentinel, int)
                    job = running.pop(sentinel)
                    job.process.join()
                    if _has_ended(job):
                        yield job.cell
                    else:
                        waiting.appendleft((job.cell, job.crashes + 1))
        finally:
            for job in running.values():
                job.process.terminate()
            for job in running.values():
                job.process.join()

    def _start(self, cell: GridCell, crashes: int) -> _CellProcess:
        arguments = (os.getpid(), cell.run.path, cell.config.to_dict(), self.threads)
        process = get_context("spawn").Process(target=_child, args=arguments, name=cell.run.path.name)
        process.start()
        return _CellProcess(cell, process, crashes)


def _child(parent: int, path: Path, config: dict[str, Any], threads: int) -> None:
    exit_with_parent(parent)
    run_cell(path, config, threads)


def _has_ended(job: _CellProcess) -> bool:
    """Whether the cell is done or recorded as failed. A cell whose process keeps crashing is recorded here."""
    run = job.cell.run
    if run.done or run.failure() is not None:
        return True
    if job.crashes < RETRIES:
        return False
    code = job.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    fail(run, f"The process ended with {how}, {RETRIES + 1} times. Signal 9 often means out of memory: use fewer jobs.")
    return True
