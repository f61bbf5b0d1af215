"""Cells on this machine: a few processes that train one cell after the other. A crash of one affects no other cell."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import fail, run_cell
from ltds.core.parallel import end_processes, start_worker, worker_error
from ltds.core.processor import chosen_threads, cores, retain_memory
from ltds.core.progress import Advance
from ltds.core.runs import RunDirectory
from ltds.core.worker import send

RETRIES = 2  # of a cell whose process was killed or ran out of memory, and so recorded no error
PATIENCE = 5.0

SentCell = tuple[Path, dict[str, Any], Path | None]  # the folder of the run, its settings, the run of its first phase


@dataclass(frozen=True)
class _Assignment:
    """A cell, and how many processes ended while they trained it."""

    cell: GridCell
    crashes: int = 0


@dataclass(frozen=True)
class _CellProcess:
    """A process that trains the cells that it is sent and answers each when it has ended."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]
    answers: IO[bytes]

    @classmethod
    def start(cls, threads: int) -> _CellProcess:
        process = start_worker()
        assert process.stdin is not None
        assert process.stdout is not None
        worker = cls(process, process.stdin, process.stdout)
        worker._send((partial(_train, threads=threads), partial(_set_up, sys.argv)))
        return worker

    def train(self, cell: GridCell) -> None:
        first_phase = None if cell.first_phase is None else cell.first_phase.path
        self._send((cell.run.path, cell.config.to_dict(), first_phase))

    def _send(self, message: object) -> None:
        with suppress(OSError):  # a process that has just ended: the loop notices that by itself
            send(self.requests, message)

    def answered(self) -> bool:
        """Whether it has ended its cell; False: it has itself ended."""
        try:
            kind, value = pickle.load(self.answers)
        except (OSError, EOFError, pickle.UnpicklingError):
            return False
        if kind == "error":  # the cell's own errors are recorded, not raised: this one ends all cells
            raise worker_error(*value)
        return True

    def stop(self, patience: float = 0.0) -> None:
        """`patience`: seconds that it may take to end by itself, which keeps its exit code."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        end_processes([self.process], PATIENCE)
        self.close()

    def close(self) -> None:
        for stream in (self.requests, self.answers):
            with suppress(OSError):  # what was to be sent to a process that has ended
                stream.close()


class LocalExecutor:
    """`jobs` processes, each of which trains many cells, so that short ones pay off.

    They share the machine's cores equally, unless the user chose how many threads a process has.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.threads = chosen_threads() or max(1, cores() // jobs)

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        """Yield each cell when it has ended, done or failed. Closing early ends the processes; checkpoints stay."""
        waiting = deque(_Assignment(cell) for cell in cells)
        idle: list[_CellProcess] = []
        busy: dict[int, tuple[_CellProcess, _Assignment]] = {}  # by the file descriptor of its answers
        try:
            while waiting or busy:
                while waiting and len(busy) < self.jobs:
                    worker = idle.pop() if idle else _CellProcess.start(self.threads)
                    assignment = waiting.popleft()
                    busy[worker.answers.fileno()] = worker, assignment
                    worker.train(assignment.cell)
                for descriptor in wait(list(busy)):
                    assert isinstance(descriptor, int)
                    worker, assignment = busy[descriptor]
                    alive = worker.answered()
                    del busy[descriptor]
                    if alive and assignment.cell.run.failure() is None:
                        idle.append(worker)
                    else:  # after an error a fresh process is safer: memory, libraries, devices
                        worker.stop(0.0 if alive else PATIENCE)
                    if alive or _has_ended(assignment, worker.process.returncode):
                        yield assignment.cell
                    else:
                        waiting.appendleft(_Assignment(assignment.cell, assignment.crashes + 1))
        finally:
            left = [*idle, *(worker for worker, _ in busy.values())]
            end_processes([worker.process for worker in left], PATIENCE)
            for worker in left:
                worker.close()


def _set_up(command: list[str]) -> None:
    """`command`: what the user typed, which a run records."""
    sys.argv = command
    retain_memory()
    gc.freeze()  # what torch consists of stays: to search it for garbage after each cell takes a tenth of a second


def _train(sent: SentCell, advance: Advance, *, threads: int) -> None:
    path, config, first_phase = sent
    try:
        run_cell(path, config, threads, first_phase)
    except (SystemExit, KeyboardInterrupt) as error:  # of the user's own code: Ctrl-C does not reach this process
        fail(RunDirectory(path), f"{type(error).__name__}: {error}", traceback.format_exc())
    gc.collect()


def _has_ended(assignment: _Assignment, code: int | None) -> bool:
    """Whether the cell of a process that ended is done or recorded as failed; one that keeps crashing is recorded."""
    run = assignment.cell.run
    if run.ended:
        return True
    if assignment.crashes < RETRIES:
        return False
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    often = " This is often for lack of memory: use fewer jobs." if code == -9 else ""
    fail(run, f"The process ended with {how}, {RETRIES + 1} times.{often}")
    return True
