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
from threading import Lock

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

    However it ends, those processes are gone when it has ended.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(parts)):
        waiting.put(number)
    results: dict[int, Decoded] = {}
    one_at_a_time = Lock()

    def tell(amount: int = 1, note: str = "") -> None:
        with one_at_a_time:
            advance(amount)

    def work(decode_one: Callable[[Part, Advance], Decoded]) -> None:
        try:
            while True:
                number = waiting.get_nowait()
                results[number] = decode_one(parts[number], tell)
                flushed.append(pool.submit(_flush, parts[number].file))
        except Empty:
            pass
        except BaseException:
            _clear(waiting)  # nobody goes on
            raise

    helpers = [_start() for _ in range(min(processes, len(parts)) - 1)]
    pool = ThreadPoolExecutor(len(helpers) + 1, thread_name_prefix="ltds-parts")
    flushed: list[Future[None]] = []  # the disk is waited for while other parts are decoded
    try:
        others = [pool.submit(work, partial(_ask, helper)) for helper in helpers]
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


def _clear(queue: SimpleQueue[int]) -> None:
    with suppress(Empty):
        while True:
            queue.get_nowait()


def _start() -> subprocess.Popen[str]:
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ltds.data.parts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _ask(process: subprocess.Popen[str], part: Part, tell: Advance) -> Decoded:
    """Give a part to a process and wait for its answer: some numbers of images done, then what came out."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(part)) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if isinstance(answer, int):
                tell(answer)
            elif isinstance(answer, str):
                raise OSError(answer)
            else:
                return Decoded([(h, w) for h, w in answer["shapes"]], answer["problems"])
    except BrokenPipeError:
        pass
    raise OSError(f"a process that decodes images ended early, with code {process.wait()}")


def _serve() -> None:
    """Parts come as lines of JSON; answers go the same way. The end of the input is the end of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    done = 0

    def say(what: object) -> None:
        print(json.dumps(what), flush=True)

    def advance(amount: int = 1, note: str = "") -> None:
        nonlocal done
        done += amount
        if done >= TOLD_EVERY:
            say(done)
            done = 0

    for line in sys.stdin:
        try:
            result = decode_here(Part(**json.loads(line)), advance)
        except OSError as error:  # no room, no right to write
            say(str(error))
            continue
        say(done)
        done = 0
        say(asdict(result))


if __name__ == "__main__":
    _serve()
