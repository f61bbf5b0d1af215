"""Results computed in advance by threads, returned in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

READING_THREADS = 2  # decode images in advance; no network computes in them, which would compete for the same cores

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int, window: int
) -> Generator[Result, None, None]:
    """`function(item)` for each item, in order; at most `window` of them are started before they are asked for.

    Without threads each is computed when it is asked for. An exception is raised where its result would come. However
    the loop over the results ends, all threads have ended by then: calls not yet started are dropped, others finish.
    """
    if not threads:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ltds-prefetch")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > window:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
