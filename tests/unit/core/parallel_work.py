"""Functions for worker processes, which find them by the name of this module."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ltds.core.errors import DataError
from ltds.core.progress import Advance


def square(chunk: int, advance: Advance) -> tuple[int, int]:
    advance(1, f"chunk {chunk}")
    return chunk * chunk, os.getpid()


def sleep(chunk: float, advance: Advance) -> float:
    time.sleep(chunk)
    return chunk


def die_in_a_worker(chunk: int, advance: Advance) -> int:
    """Report half of the chunk, then end like a process out of memory; harmless in the process of that number."""
    if os.getpid() != chunk:
        advance(1)
        time.sleep(0.2)
        advance(1)  # long after the last report, so it is sent
        os.kill(os.getpid(), signal.SIGKILL)
    advance(5)
    return chunk


def fail(chunk: int, advance: Advance) -> None:
    if chunk == 1:
        raise DataError("Expected another chunk.")
    time.sleep(60)


def write_then_sleep(chunk: Path, advance: Advance) -> None:
    """Note the number of the process, so that a test can see whether it is alive."""
    (chunk / str(os.getpid())).touch()
    time.sleep(60)


def print_and_return(chunk: str, advance: Advance) -> str:
    print("a line that is no answer")
    return chunk


def unpicklable_error(chunk: int, advance: Advance) -> None:
    class LocalError(Exception):
        pass

    raise LocalError("cannot be sent")


def mark_environment() -> None:
    os.environ["LTDS_TEST_SETUP"] = "done"


def read_environment(chunk: int, advance: Advance) -> str | None:
    return os.environ.get("LTDS_TEST_SETUP")
