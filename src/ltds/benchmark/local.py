"""Cells in processes of this machine: one process a cell, so that the death of one concerns no other."""

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

from ltds.benchmark.grid import Cell
from ltds.benchmark.work import die_with, fail, work

RETRIES = 2  # of a process that died without a word: out of memory, or killed


@dataclass
class _Job:
    cell: Cell
    process: SpawnProcess
    deaths: int


class Local:
    """`jobs` processes at a time, the machine's cores shared out among them."""

    def __init__(self, jobs: int, cores: int | None = None) -> None:
        self.jobs = jobs
        self.threads = max(1, (cores or os.cpu_count() or 1) // jobs)

    def submit(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Each cell when it is over, done or failed. Leaving early ends the processes; what they saved stays."""
        waiting = deque((cell, 0) for cell in cells)
        running: dict[int, _Job] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    job = self._start(*waiting.popleft())
                    running[job.process.sentinel] = job
                for sentinel in wait(list(running)):
                    assert isinstance(sentinel, int)
                    job = running.pop(sentinel)
                    job.process.join()
                    if _over(job):
                        yield job.cell
                    else:
                        waiting.appendleft((job.cell, job.deaths + 1))
        finally:
            for job in running.values():
                job.process.terminate()
            for job in running.values():
                job.process.join()

    def _start(self, cell: Cell, deaths: int) -> _Job:
        arguments = (os.getpid(), cell.run.path, cell.config.to_dict(), self.threads)
        process = get_context("spawn").Process(target=_child, args=arguments, name=cell.run.path.name)
        process.start()
        return _Job(cell, process, deaths)


def _child(parent: int, path: Path, config: dict[str, Any], threads: int) -> None:
    die_with(parent)
    work(path, config, threads)


def _over(job: _Job) -> bool:
    """Whether the cell is done or recorded as failed; one whose process keeps dying is recorded here."""
    run = job.cell.run
    if run.done or run.failure() is not None:
        return True
    if job.deaths < RETRIES:
        return False
    code = job.process.exitcode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    fail(
        run,
        f"The process ended with {how}, {RETRIES + 1} times. Signal 9 often means: out of memory; use fewer --jobs.",
    )
    return True
