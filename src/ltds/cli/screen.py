"""Output for people: progress bars on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ltds.core.bars import Bars
from ltds.core.progress import Advance
from ltds.core.text import count, inert, printable

NAMED = 10  # images that could not be read
LONGEST = 300  # characters of the path of one of them


@dataclass
class Screen:
    """How much to print, as `-q` and `-v` say, and the functions that print it."""

    quiet: bool = False
    verbose: bool = False
    _bars: Bars = field(default_factory=Bars, repr=False)

    @property
    def bars(self) -> bool:
        return not self.quiet and sys.stderr.isatty()

    def track(self, title: str, total: int, done: int = 0) -> AbstractContextManager[Advance]:
        """A bar on a terminal; elsewhere a line once a minute, with -v more."""
        self._bars.shown, self._bars.lines.tenths = not self.quiet, self.verbose
        return self._bars.track(title, total, done)

    def say(self, text: str) -> None:
        """A message on standard error."""
        if not self.quiet:
            print(inert(text), file=sys.stderr, flush=True)

    def result(self, text: str) -> None:
        """A line on standard output, which others may read."""
        print(inert(text))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A result on standard output: the first column aligned left, the others right."""
        table = Table(header_style="bold")
        for i, name in enumerate(header):
            table.add_column(escape(inert(name)), justify="left" if i == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*(escape(inert(cell)) for cell in row))
        console = Console()
        if not console.is_terminal:  # a pipe has no width: never cut a table there
            console = Console(width=max(200, console.width))
        console.print(table)


SCREEN = Screen()


def name_unread(files: Iterable[tuple[Path, str]], fate: str) -> None:
    """Name images that could not be read, with the reason. They are errors, which are printed with -q, too."""
    lines = [f"- {_shortened(printable(file))}: {reason}" for file, reason in files]
    number = count(len(lines), "image was", "images were")
    more = [f"- ... and {len(lines) - NAMED} more"] if len(lines) > NAMED else []
    for line in (f"ltds: {number} {fate}, because reading failed:", *lines[:NAMED], *more):
        print(inert(line), file=sys.stderr)


def _shortened(path: str) -> str:
    """The path, or its beginning where it is too long: a list may hold anything."""
    return path if len(path) <= LONGEST else f"{path[:LONGEST]}..."
