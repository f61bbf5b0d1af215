"""How long work reports on itself. The command line passes bars and prints lines; everything else is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Say = Callable[[str], object]
"""A function that takes a line of text for the user, such as `print`."""


def say_nothing(line: str) -> None:
    """For callers that want no words."""


class Advance(Protocol):
    """Call it when `amount` more of the work is done; `note` replaces the words behind the bar."""

    def __call__(self, amount: int = 1, note: str = "") -> None: ...


class Progress(Protocol):
    """`with progress.track("Rendering", 5000) as advance: ...; advance()`."""

    def track(self, title: str, total: int, done: int = 0) -> AbstractContextManager[Advance]: ...


def ignore_progress(amount: int = 1, note: str = "") -> None:
    """An `Advance` for work that nobody watches."""


class Silent:
    """Progress that says nothing."""

    @contextmanager
    def track(self, title: str, total: int, done: int = 0) -> Iterator[Advance]:
        yield ignore_progress


SILENT = Silent()
