"""Images decoded into files, part after part of a dataset: by this process, and others that run this module.

Threads would not do: of a small image most of the work is Python's, which threads do in turns. The processes are
started by hand and not by `multiprocessing`, whose own would run the user's script again, or copy a process that has
threads.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock

from ltds.core.errors import DataError
from ltds.core.progress import Advance
from ltds.data.decode import decoded

TOLD_EVERY = 32  # images between two messages of a process


@dataclass(frozen=True)
class Part:
    """Images to decode, their shorter sides at most `size`, and the file for their bytes, one after the other."""

    images: list[str]
    size: int
    file: str


@dataclass(frozen=True)
class Decoded:
    """(h,w) of each image of a part that could be read, and what was wrong with the others."""

    shapes: list[tuple[int, int]]
    problems: list[str]


def decode_here(part: Part, advance: Advance) -> Decoded:
    """The pixels of a part in its file. After a problem the file is of no use."""
    shapes: list[tuple[int, int]] = []
    problems: list[str] = []
    with open(part.file, "wb") as stream:
        for image in part.images:
            try:
                pixels = decoded(image, part.size)
            except DataError as error:
                problems.append(str(error))
            else:
                shapes.append((pixels.height, pixels.width))
                stream.write(pixels.tobytes())
            advance()
    return Decoded(shapes, problems)


def decode_parts(parts: Sequence[Part], processes: int, advance: Advance) -> list[Decoded]:
    """All parts, by this process and `processes - 1` more, safe on the disk.

    This process does alone what its helpers cannot: those that do not start or end early, and parts in which they find
    problems, since it may know more kinds of images than they do, or have other limits. However it ends, the helpers
    are gone when it has ended.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(parts)):
        waiting.put(number)
    results: dict[int, Decoded] = {}
    one_at_a_time, stopped = Lock(), Event()

    def tell(amount: int = 1, note: str = "") -> None:
        with one_at_a_time:
            advance(amount)

    def work(decode_one: Callable[[Part, Advance], Decoded]) -> None:
        try:
            while not stopped.is_set():
                number = waiting.get_nowait()
                results[number] = decode_one(parts[number], tell)
                flushed.append(pool.submit(_flush, parts[number].file))
        except Empty:
            pass
        except BaseException:
            stopped.set()  # nobody goes on
            raise

    helpers: list[subprocess.Popen[str]] = []
    pool = ThreadPoolExecutor(max(processes, 1), thread_name_prefix="ltds-parts")
    flushed: list[Future[None]] = []  # the disk is waited for while other parts are decoded
    try:
        with suppress(OSError):  # no more processes to be had
            while len(helpers) < min(processes, len(parts)) - 1:
                helpers.append(_start())
        others = [pool.submit(work, partial(_decode_there, helper, stopped)) for helper in helpers]
        work(decode_here)
        for other in others:
            other.result()
        for file in flushed:
            file.result()
    finally:
        for helper in helpers:
            helper.kill()
        pool.shutdown(wait=True, cancel_futures=True)
        for helper in helpers:
            helper.communicate()
    return [results[number] for number in range(len(parts))]


def _flush(file: str) -> None:
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())


def _start() -> subprocess.Popen[str]:
    """A helper that finds modules where this process does."""
    code = "import sys; sys.path[:] = sys.argv[1:]; from ltds.data.parts import serve; serve()"
    package = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, *sys.path, package],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _decode_there(helper: subprocess.Popen[str], stopped: Event, part: Part, advance: Advance) -> Decoded:
    """The part decoded by a helper, or else here, unless all is `stopped`."""
    told = 0

    def tell(amount: int = 1, note: str = "") -> None:
        nonlocal told
        told += amount
        advance(amount)

    def go_on(amount: int = 1, note: str = "") -> None:
        if stopped.is_set():
            raise InterruptedError("decoding was stopped")

    result = _ask(helper, part, tell)
    if result is None or result.problems:
        result = decode_here(part, go_on)
    advance(len(part.images) - told)
    return result


def _ask(helper: subprocess.Popen[str], part: Part, tell: Advance) -> Decoded | None:
    """A helper's answer: some numbers of images done, then what came out. None where it fails."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    with suppress(BrokenPipeError):
        helper.stdin.write(json.dumps(asdict(part)) + "\n")
        helper.stdin.flush()
        for line in helper.stdout:
            answer = json.loads(line)
            if answer is None:
                return None
            if isinstance(answer, dict):
                return Decoded([(h, w) for h, w in answer["shapes"]], answer["problems"])
            tell(answer)
    return None


def serve() -> None:
    """A helper's life. Parts come as lines of JSON; answers go the same way. The end of the input is its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anybody else prints is no answer
    done = 0

    def say(what: object) -> None:
        print(json.dumps(what), file=answers, flush=True)

    def advance(amount: int = 1, note: str = "") -> None:
        nonlocal done
        done += amount
        if done >= TOLD_EVERY:
            say(done)
            done = 0

    for line in sys.stdin:
        try:
            result = decode_here(Part(**json.loads(line)), advance)
        except Exception:  # who asked will meet it too, and say so
            say(None)
        else:
            say(asdict(result))
        done = 0
