"""Chunks of work in several processes: results in the order of completion, and no process left behind.

Workers are plain Python processes that import only the module of the work. The processes of `multiprocessing` would run
the user's script again, or copy a process that has threads.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeVar

from ltds.core.errors import LtdsError, expected
from ltds.core.progress import Advance
from ltds.core.worker import Message, send

ChunkItem = TypeVar("ChunkItem")
ChunkResult = TypeVar("ChunkResult")
Work = Callable[[ChunkItem, Advance], ChunkResult]
THREAD_NAME = "ltds-parallel"
PATIENCE = 2.0  # seconds in which a worker may delete its half-written files


class WorkerError(LtdsError):
    """A worker process that ended in the middle of its work."""


def run_chunks(
    work: Work[ChunkItem, ChunkResult],
    chunks: Sequence[ChunkItem],
    workers: int,
    advance: Advance,
    *,
    take_part: bool = False,
    setup: Callable[[], None] | None = None,
) -> Iterator[tuple[int, ChunkResult]]:
    """`(i, work(chunks[i], advance))` for each chunk, as they get done; in this process where `workers` is at most 1.

    `work` and `setup`, which each worker calls first, are functions of an importable module, or partials of them.
    `advance` is called by one thread at a time. With `take_part` this process is one of the workers, and it also does
    the chunk of a worker that ended early; without, such an end raises WorkerError. The first error ends everything:
    chunks not yet begun are dropped. However the loop over the results ends, all workers have ended by then.
    """
    workers = min(workers, len(chunks))
    if workers <= 1:
        yield from ((number, work(chunk, advance)) for number, chunk in enumerate(chunks))
        return
    task = pickle.dumps((work, setup))
    team = _Team(chunks, advance)
    try:
        take_part = not team.start(workers - take_part, task) or take_part
        done = 0
        while done < len(chunks):
            number = team.take() if take_part and team.results.empty() else None
            if number is not None:
                yield number, work(chunks[number], team.tell)
            elif (result := team.wait(give_back=take_part)) is not None:
                yield result
            else:
                continue
            done += 1
    finally:
        team.stop()


class _Team:
    """The workers, a thread for each that talks to it, and the queues between these threads and the caller."""

    def __init__(self, chunks: Sequence[Any], advance: Advance) -> None:
        self.chunks, self.advance, self.lock = chunks, advance, threading.Lock()
        self.waiting: SimpleQueue[int] = SimpleQueue()
        for number in range(len(chunks)):
            self.waiting.put(number)
        self.results: SimpleQueue[tuple[int | None, Message]] = SimpleQueue()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads: list[threading.Thread] = []

    def start(self, count: int, task: bytes) -> int:
        """Start `count` workers, or as many as the system allows; returns their number."""
        with suppress(OSError):
            while len(self.processes) < count:
                self.processes.append(start_worker())
        for process in self.processes:
            self.threads.append(threading.Thread(target=self._talk, args=(process, task), name=THREAD_NAME))
            self.threads[-1].start()
        return len(self.processes)

    def tell(self, amount: int = 1, note: str = "") -> None:
        with self.lock:
            self.advance(amount, note)

    def take(self) -> int | None:
        """The number of a chunk that nobody has begun, if there is one."""
        try:
            return self.waiting.get_nowait()
        except Empty:
            return None

    def wait(self, *, give_back: bool) -> tuple[int, Any] | None:
        """The next result of a worker; None where one ended early and its chunk waits again (`give_back`)."""
        number, (kind, value) = self.results.get()
        if kind == "result":
            assert number is not None
            return number, value
        if kind == "error":
            raise worker_error(*value)
        if not give_back:
            got = "one that ended by itself or was ended by the system (often for lack of memory)"
            remedy = f"What is finished is kept: run it again with fewer than {len(self.processes)} processes."
            raise WorkerError(expected("every worker process", "running until all is done", got, remedy))
        if number is not None:
            self.tell(-value)  # what it had reported of this chunk
            self.waiting.put(number)
        return None

    def _talk(self, process: subprocess.Popen[bytes], task: bytes) -> None:
        """Send a worker chunk after chunk and pass its answers on, until no chunk waits or the worker ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        number, reported = None, 0
        try:
            process.stdin.write(task)
            while (number := self.take()) is not None:
                reported = 0
                send(process.stdin, self.chunks[number])
                while (answer := pickle.load(process.stdout))[0] == "progress":
                    reported += answer[1][0]
                    self.tell(*answer[1])
                self.results.put((number, answer))
        except (OSError, EOFError, pickle.UnpicklingError):
            self.results.put((number, ("ended", reported)))
        except BaseException as error:  # of `advance`, such as Ctrl-C in a progress bar: raised again by `wait`
            self.results.put((number, ("error", (error, ""))))

    def stop(self) -> None:
        """End the workers and wait for them and their threads."""
        while self.take() is not None:
            pass
        end_processes(self.processes, PATIENCE)
        for thread in self.threads:
            thread.join()
        for process in self.processes:
            with suppress(OSError):  # what was to be sent to a worker that has ended
                process.communicate()


def worker_error(error: BaseException | None, trace: str) -> BaseException:
    """The error that a worker answered with, to be raised here; its traceback goes with it."""
    error = error or RuntimeError("a worker process failed")
    if trace:
        error.add_note(f"In the worker process:\n{trace}")
    return error


def end_processes(processes: Sequence[subprocess.Popen[bytes]], patience: float) -> None:
    """Ask all of them to end, and kill those that still run after `patience` seconds."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_worker() -> subprocess.Popen[bytes]:
    """A process that finds modules where this one does, and that ends with it."""
    code = "import sys; sys.path[:] = sys.argv[2:]; from ltds.core import worker; worker.run_worker(int(sys.argv[1]))"
    return start_python(code, [str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def start_python(
    code: str, arguments: Sequence[str], *, stdin: int, stdout: int | IO[bytes], stderr: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """A process that runs `code`, which finds this one's module path in sys.argv, behind the arguments."""
    package = str(Path(__file__).parents[2])
    # It inherits the mask: Ctrl-C cannot reach it while it starts, when Python would print a traceback.
    with _without_interrupts():
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, *arguments, *sys.path, package],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
