"""The side of a worker process: it runs the chunks that its parent sends, and never outlives the parent."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import IO, Any

from ltds.core.progress import Advance

if sys.platform == "win32":
    import _winapi

Message = tuple[str, Any]  # ("progress", (amount, note)), ("result", value) or ("error", (exception, traceback))
PR_SET_PDEATHSIG = 1  # from linux/prctl.h
POLL_SECONDS = 0.5
REPORT_SECONDS = 0.1  # at most ten progress messages a second


def exit_with_parent(parent: int) -> None:
    """End this process when the process `parent`, which started it, has ended, however that one ended.

    Linux kills it at once, even in the middle of C code. Elsewhere a thread waits for it, or looks twice a second.
    """
    if sys.platform == "win32":  # where getppid() may be python.exe of a virtual environment, which starts the real one
        threading.Thread(target=_wait_on_windows, args=(parent,), daemon=True).start()
        return
    if not _killed_by_linux():
        threading.Thread(target=_wait_for_end_of, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before this process could ask for the signal
        os._exit(1)


def _killed_by_linux() -> bool:
    """Ask Linux to send SIGKILL when the parent ends; False where that is not possible."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _wait_for_end_of(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def _wait_on_windows(parent: int) -> None:
    if sys.platform == "win32":
        with suppress(OSError):  # it has ended already
            process = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
            _winapi.WaitForSingleObject(process, _winapi.INFINITE)
        os._exit(1)


def run_worker(parent: int) -> None:
    """The whole life of a worker: set up, answer its parent until the end of the input, end without delay."""
    exit_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    signal.signal(signal.SIGTERM, _end)
    code = 1
    try:
        _serve()
        code = 0
    except (_Ended, BrokenPipeError):  # by the parent, or it is gone
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # nothing to save, and taking torch apart would last longer than much of the work


class _Ended(BaseException):
    """The parent ends this process: an exception, so that half-written files are deleted."""


def _end(number: int, frame: FrameType | None) -> None:
    raise _Ended


def _serve() -> None:
    """Read the function and its setup, then chunks, from standard input, all pickled; answer on standard output.

    What anybody else prints goes to standard error, because it is not an answer; nobody else reads a request.
    """
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # it was opened on a pipe, where lines wait for a full buffer
    try:
        work, setup = pickle.load(requests)
        if setup is not None:
            setup()
    except Exception as error:
        send(answers, ("error", described(error)))
        return
    while True:
        try:
            chunk = pickle.load(requests)
        except EOFError:
            return
        send(answers, _answer(work, chunk, _Reporter(answers)))


def _answer(work: Callable[[Any, Advance], Any], chunk: Any, reporter: _Reporter) -> Message:
    try:
        result = work(chunk, reporter)
    except Exception as error:
        return "error", described(error)
    reporter.flush()
    return "result", result


class _Reporter:
    """Sums up progress and tells the parent a few times a second."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers, self.amount, self.note, self.told = answers, 0, "", time.monotonic()

    def __call__(self, amount: int = 1, note: str = "") -> None:
        self.amount, self.note = self.amount + amount, note
        if time.monotonic() - self.told > REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self.amount:
            send(self.answers, ("progress", (self.amount, self.note)))
        self.amount, self.told = 0, time.monotonic()


def send(stream: IO[bytes], message: object) -> None:
    stream.write(pickle.dumps(message))
    stream.flush()


def described(error: Exception) -> tuple[Exception | None, str]:
    """The exception, or None where it cannot be pickled, and its traceback as text."""
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickling runs the exception's own code
        return None, text
    return error, text
