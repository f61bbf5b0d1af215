"""Progress bars with the time left, on a terminal or in a notebook; lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from ltds.core.lines import Lines
from ltds.core.progress import SILENT, Advance
from ltds.core.text import inert

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class Bars:
    """Bars for whatever takes long: `ltds.train(..., progress=ltds.Bars())`.

    They are drawn on standard error, so that standard output stays clean for tables and pipes. Where standard error is
    a file, there is a line once a minute instead. `shown=False` draws nothing at all.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self.shown = shown
        self.lines = Lines()
        self._open: RichProgress | None = None

    @property
    def drawn(self) -> bool:
        """Whether there is a terminal or a notebook to draw on."""
        from rich.console import Console

        return sys.stderr.isatty() or Console(stderr=True).is_jupyter

    def track(self, title: str, total: int, done: int = 0) -> AbstractContextManager[Advance]:
        """A bar; inside another one it is a line below it, until its work is done."""
        if not self.shown:
            return SILENT.track(title, total, done)
        return self._bar(title, total, done) if self.drawn else self.lines.track(title, total, done)

    @contextmanager
    def _bar(self, title: str, total: int, done: int) -> Iterator[Advance]:
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
        with Progress(*columns, console=Console(stderr=True)) as display:
            self._open = display
            try:
                yield display
            finally:
                self._open = None
