"""Work in a forked child: whatever it does to its process, this one goes on and says how it ended.

Forking saves importing torch for each of some thousand children; the parent never computes anything itself.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from ltds.core.errors import LtdsError

MOST = 50_000  # characters that a child says: fewer than a pipe holds, because it is read at the end


@dataclass(frozen=True)
class ChildEnd:
    """How a child ended: `said` is what it returned, the sentence of an LtdsError, or a traceback."""

    kind: str  # "ended", "refused" (LtdsError), "fault" (any other exception), "signal" or "hang"
    said: str

    @property
    def is_fault(self) -> bool:
        return self.kind in ("fault", "signal", "hang")


def start(work: Callable[[], object], quiet: bool = True) -> tuple[int, int]:
    """The process and the pipe on which it says how it ended."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    os.close(reading)
    if quiet:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    kind, said = "ended", ""
    try:
        result = work()
        said = result if isinstance(result, str) else ""
    except LtdsError as error:
        kind, said = "refused", str(error)
    except BaseException:
        kind, said = "fault", traceback.format_exc()
    with os.fdopen(writing, "w", errors="replace") as stream:
        stream.write(f"{kind}\n{said[-MOST:]}")
    os._exit(0)


def finish(process: int, reading: int, seconds: float = 120.0) -> ChildEnd:
    """Wait for a child; one that takes longer is killed, and hangs."""
    until, hung = time.monotonic() + seconds, False
    while not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if time.monotonic() > until:
            hung = True
            os.kill(process, signal.SIGKILL)
            break
        time.sleep(0.002)
    _, status = os.waitpid(process, 0)
    with os.fdopen(reading, errors="replace") as stream:
        text = stream.read()
    if hung:
        return ChildEnd("hang", f"not finished after {seconds:.0f} s")
    if os.WIFSIGNALED(status):
        return ChildEnd("signal", signal.Signals(os.WTERMSIG(status)).name)
    kind, _, said = text.partition("\n")
    return ChildEnd(kind or "fault", said)


def import_what_it_imports(work: Callable[[], object]) -> None:
    """Do the work in a child, then import here what it imported there: every later child finds it ready.

    In the same order: from the middle of some packages, such as torch._dynamo, an import ends half done.
    """

    def names() -> str:
        before = set(sys.modules)
        work()
        return "\n".join(name for name in sys.modules if name not in before)

    end = in_child(names)
    if end.kind != "ended":
        raise RuntimeError(end.said)
    for name in end.said.split():
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def in_child(work: Callable[[], object], seconds: float = 120.0) -> ChildEnd:
    """Do this in a child and wait for it."""
    return finish(*start(work), seconds)
