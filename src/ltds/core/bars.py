"""Progress bars with the time left, on a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ltds.core.progress import Advance
from ltds.core.text import inert

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class Bars:
    """Bars for whatever takes long: `ltds.train(..., progress=ltds.Bars())`.

    They are drawn on standard error, so that standard output stays clean for tables and pipes. Nothing is drawn where
    standard error is a file. `shown=False` draws nothing at all.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self.shown = shown
        self._open: RichProgress | None = None

    @contextmanager
    def track(self, title: str, total: int, done: int = 0) -> Iterator[Advance]:
        """A bar; inside another one it is a line below it, until its work is done."""
        from rich.markup import escape

        inside = self._open is not None
        with self._display() as display:
            task = display.add_task(escape(inert(title)), total=total, completed=done, note="")

            def advance(amount: int = 1, note: str = "") -> None:
                display.update(task, advance=amount, note=escape(inert(note)))

            try:
                yield advance
            finally:
                if inside:
                    display.remove_task(task)

    @contextmanager
    def _display(self) -> Iterator[RichProgress]:
        """The bars that are open, or new ones: two displays would overwrite each other on the terminal."""
        if self._open is not None:
            yield self._open
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        console = Console(stderr=True)
        drawn = self.shown and (sys.stderr.isatty() or console.is_jupyter)
        with Progress(*columns, console=console, disable=not drawn) as display:
            self._open = display
            try:
                yield display
            finally:
                self._open = None
