"""Processes that redraw: started, ended by Ctrl-C without noise, and missed when the system kills one."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

import torch

from ltds.core.errors import DataError, expected

Chunk = TypeVar("Chunk")
Done = TypeVar("Done")


def run(work: Callable[[Chunk], Done], chunks: Sequence[Chunk], jobs: int) -> Iterator[Done]:
    """What `work` makes of each chunk, as they get done; in this process where one is enough."""
    if jobs <= 1:
        yield from map(work, chunks)
        return
    context = multiprocessing.get_context("spawn")  # not forked: torch has threads, which a fork would break
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_settle) as pool:
        try:
            with _interrupts_held():
                running = [pool.submit(work, chunk) for chunk in chunks]
            for job in as_completed(running):
                yield job.result()
        except BrokenProcessPool as error:
            rule, got = "alive until all is made", "one that ended by itself or was ended (often for want of memory)"
            remedy = f"The images made so far are kept: run it again with fewer processes, e.g. --jobs {jobs // 2}."
            raise DataError(expected(f"the {jobs} processes that redraw", rule, got, remedy)) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block ends, so that no process is left half told what to do.

    Processes started in it inherit the mask: it cannot meet them half imported, where Python would print where.
    """
    came: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    heard = callable(handler) and threading.current_thread() is threading.main_thread()  # no other is interrupted
    if heard:
        signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if heard:
            signal.signal(signal.SIGINT, handler)
        for number in came[:1]:
            signal.raise_signal(number)


def _settle() -> None:
    """A process's start: one thread, for the cores are taken; and from now on Ctrl-C ends it, without a word.

    Unless the whole command was started to ignore it, as shells do in the background.
    """
    torch.set_num_threads(1)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
