"""Progress in lines, where there is no terminal for bars: the log of a job on a cluster, a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ltds.core.durations import say_duration
from ltds.core.progress import Advance
from ltds.core.text import inert

PAUSE = 60.0  # seconds between two lines


class Lines:
    """A line on standard error once a minute; less often in long work, so that a day of it is not a thousand lines.

    `tenths=True` prints one for each tenth of the work as well.
    """

    def __init__(self, *, tenths: bool = False) -> None:
        self.tenths = tenths

    @contextmanager
    def track(self, title: str, total: int, done: int = 0) -> Iterator[Advance]:
        """Work that takes less than a minute prints nothing, unless every tenth is wanted."""
        start = last = time.monotonic()
        position = done

        def advance(amount: int = 1, note: str = "") -> None:
            nonlocal position, last
            before, position = position, position + amount
            now = time.monotonic()
            tenth = self.tenths and 10 * before // max(total, 1) != 10 * position // max(total, 1)
            if tenth or now - last >= max(PAUSE, (now - start) / 10):
                last = now
                left = (now - start) / max(position - done, 1) * (total - position)
                time_left = f", about {say_duration(left)} left" if left >= 1 and now - start >= 1 else ""
                print(inert(f"{title}: {position} of {total}{time_left} {note}".rstrip()), file=sys.stderr, flush=True)

        yield advance
