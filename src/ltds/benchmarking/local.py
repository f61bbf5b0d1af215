"""Cells on this machine: a few processes that train one cell after the other. A crash of one affects no other cell."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import fail, run_cell
from ltds.core.parallel import end_processes, start_worker, worker_error
from ltds.core.processor import chosen_threads, cores, retain_memory
from ltds.core.progress import Advance
from ltds.core.runs import RunDirectory
from ltds.core.worker import Message, send

RETRIES = 2  # of a cell whose process was killed or ran out of memory, and so recorded no error
PATIENCE = 5.0

SentCell = tuple[Path, dict[str, Any], Path | None]  # the folder of the run, its settings, the run of its first phase


@dataclass(frozen=True)
class _Assignment:
    """A cell, and how many processes ended while they trained it."""

    cell: GridCell
    crashes: int = 0


@dataclass(frozen=True, eq=False)
class _CellProcess:
    """A process that trains the cells that it is sent and answers each when it has ended."""

    process: subprocess.Popen[bytes]
    requests: IO[bytes]

    @classmethod
    def start(cls, threads: int, answers: Answers) -> _CellProcess:
        process = start_worker()
        assert process.stdin is not None
        assert process.stdout is not None
        worker = cls(process, process.stdin)
        worker._send((partial(_train, threads=threads), partial(_set_up, sys.argv)))
        threading.Thread(target=worker._listen, args=(process.stdout, answers), daemon=True).start()
        return worker

    def _listen(self, stream: IO[bytes], answers: Answers) -> None:
        """Pass on what it answers, and that it has itself ended. In a thread: Windows cannot wait for several pipes."""
        with stream:
            try:
                while True:
                    answers.put((self, pickle.load(stream)))
            except (OSError, EOFError, pickle.UnpicklingError):
                answers.put((self, ENDED))
            except Exception as error:  # of an exception's own code
                answers.put((self, ("error", (error, ""))))

    def train(self, cell: GridCell) -> None:
        first_phase = None if cell.first_phase is None else cell.first_phase.path
        self._send((cell.run.path, cell.config.to_dict(), first_phase))

    def _send(self, message: object) -> None:
        with suppress(OSError):  # a process that has just ended: the loop notices that by itself
            send(self.requests, message)

    def stop(self, patience: float = 0.0) -> None:
        """`patience`: seconds that it may take to end by itself, which keeps its exit code."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        end_processes([self.process], PATIENCE)
        self.close()

    def close(self) -> None:
        with suppress(OSError):  # what was to be sent to a process that has ended
            self.requests.close()


Answers = SimpleQueue[tuple[_CellProcess, Message]]
ENDED: Message = ("ended", None)  # the process, instead of its cell


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
        busy: dict[_CellProcess, _Assignment] = {}
        answers: Answers = SimpleQueue()
        try:
            while waiting or busy:
                while waiting and len(busy) < self.jobs:
                    worker = idle.pop() if idle else _CellProcess.start(self.threads, answers)
                    busy[worker] = waiting.popleft()
                    worker.train(busy[worker].cell)
                worker, (kind, value) = answers.get()
                if worker in idle:  # its process has ended
                    idle.remove(worker)
                    worker.stop()
                if worker not in busy:
                    continue
                if kind == "error":  # the cell's own errors are recorded, not raised: this one ends all cells
                    raise worker_error(*value)
                assignment, alive = busy.pop(worker), kind != "ended"
                if alive and assignment.cell.run.failure() is None:
                    idle.append(worker)
                else:  # after an error a fresh process is safer: memory, libraries, devices
                    worker.stop(0.0 if alive else PATIENCE)
                if alive or _has_ended(assignment, worker.process.returncode):
                    yield assignment.cell
                else:
                    waiting.appendleft(_Assignment(assignment.cell, assignment.crashes + 1))
        finally:
            left = [*idle, *busy]
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
