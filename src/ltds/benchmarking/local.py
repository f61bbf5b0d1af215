"""Cells on this machine: a few processes that train one cell after the other. A crash of one affects no other cell."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import fail, run_cell
from ltds.core.processor import cores, retain_memory
from ltds.core.worker import exit_with_parent

RETRIES = 2  # of a cell whose process was killed or ran out of memory, and so recorded no error
PATIENCE = 5.0


@dataclass(frozen=True)
class _Assignment:
    """A cell, and how many processes ended while they trained it."""

    cell: GridCell
    crashes: int = 0


@dataclass(frozen=True)
class _CellProcess:
    """A process that trains the cells that it is sent and answers each when it has ended."""

    process: SpawnProcess
    connection: Connection

    @classmethod
    def start(cls, threads: int) -> _CellProcess:
        context = get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_child, args=(os.getpid(), there, threads), name="ltds-cells")
        process.start()
        there.close()  # the child's end: the pipe breaks when the child ends
        return cls(process, here)

    def send(self, cell: GridCell) -> None:
        with suppress(OSError):  # a process that has just ended: the loop notices that by itself
            first_phase = None if cell.first_phase is None else cell.first_phase.path
            self.connection.send((cell.run.path, cell.config.to_dict(), first_phase))

    def answered(self) -> bool:
        """Whether it has ended its cell; False: it has itself ended."""
        try:
            return bool(self.connection.recv())
        except (EOFError, OSError):
            return False

    def stop(self, patience: float = 0.0) -> None:
        """`patience`: seconds that it may take to end by itself, which keeps its exit code."""
        self.process.join(patience)
        self.process.terminate()
        self.process.join()
        self.connection.close()


class LocalExecutor:
    """`jobs` processes, which share the machine's cores equally; each trains many cells, so that short ones pay off."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.threads = max(1, cores() // jobs)

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        """Yield each cell when it has ended, done or failed. Closing early ends the processes; checkpoints stay."""
        waiting = deque(_Assignment(cell) for cell in cells)
        idle: list[_CellProcess] = []
        busy: dict[Connection, tuple[_CellProcess, _Assignment]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self.jobs:
                    worker = idle.pop() if idle else _CellProcess.start(self.threads)
                    assignment = waiting.popleft()
                    busy[worker.connection] = worker, assignment
                    worker.send(assignment.cell)
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    worker, assignment = busy.pop(connection)
                    alive = worker.answered()
                    if alive and assignment.cell.run.failure() is None:
                        idle.append(worker)
                    else:  # after an error a fresh process is safer: memory, libraries, devices
                        worker.stop(0.0 if alive else PATIENCE)
                    if alive or _has_ended(assignment, worker.process.exitcode):
                        yield assignment.cell
                    else:
                        waiting.appendleft(_Assignment(assignment.cell, assignment.crashes + 1))
        finally:
            for worker in [*idle, *(worker for worker, _ in busy.values())]:
                worker.stop()


def _child(parent: int, connection: Connection, threads: int) -> None:
    exit_with_parent(parent)
    retain_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    gc.freeze()  # what torch consists of stays: to search it for garbage after each cell takes a tenth of a second
    while True:
        path, config, first_phase = _received(connection)
        run_cell(path, config, threads, first_phase)
        gc.collect()
        connection.send(True)


def _received(connection: Connection) -> tuple[Path, dict[str, Any], Path | None]:
    try:
        message: tuple[Path, dict[str, Any], Path | None] = connection.recv()
    except EOFError:
        raise SystemExit(0) from None
    return message


def _has_ended(assignment: _Assignment, code: int | None) -> bool:
    """Whether the cell of a process that ended is done or recorded as failed; one that keeps crashing is recorded."""
    run = assignment.cell.run
    if run.done or run.failure() is not None:
        return True
    if assignment.crashes < RETRIES:
        return False
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    fail(run, f"The process ended with {how}, {RETRIES + 1} times. Signal 9 often means out of memory: use fewer jobs.")
    return True
