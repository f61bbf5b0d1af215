"""The progress of a running benchmark: bars on a terminal, a line for each finished run elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ltds.benchmarking.status import METRICS, CellState, CellStatus, IndexedCell, cell_status, means, time_left
from ltds.cli.screen import SCREEN
from ltds.core.text import inert

if TYPE_CHECKING:
    from ltds.benchmarking.cells import GridCell

ORDER: tuple[CellState, ...] = ("done", "running", "stopped", "failed", "waiting")
REFRESH = 1.0  # seconds between two readings of the run directories


@contextmanager
def watching(cells: Sequence[GridCell], jobs: int) -> Iterator[Callable[[GridCell], None]]:
    """Show the progress while the block runs. Call the function that it yields with each cell that has ended."""
    indexed = [IndexedCell.of(cell) for cell in cells]
    if SCREEN.bars:
        with Live(_LiveView(indexed, jobs), console=Console(stderr=True), refresh_per_second=4, transient=True):
            yield lambda cell: None
        return
    statuses = _StatusReader(indexed)
    yield lambda cell: _line(cell, statuses(), jobs)


class _StatusReader:
    """Reads the status of all cells; that of a finished cell is read only once.

    Only runs that began after this reader count towards the time that is left.
    """

    def __init__(self, cells: Sequence[IndexedCell]) -> None:
        self._cells, self._since = cells, time.time()
        self._waiting = [CellStatus(cell, "waiting") for cell in cells]
        self._names = [cell.run.path.name for cell in cells]
        self._folders = {cell.run.path.parent for cell in cells}
        self._done: dict[int, CellStatus] = {}

    def __call__(self) -> list[CellStatus]:
        """The folders are listed once: to look for the files of each cell that waits would take long for thousands."""
        there: set[str] = set()
        with suppress(OSError):
            for folder in self._folders:
                there.update(os.listdir(folder))
        return [self._read(i) if name in there else self._waiting[i] for i, name in enumerate(self._names)]

    def _read(self, place: int) -> CellStatus:
        if place not in self._done:
            status = cell_status(self._cells[place], since=self._since)
            if status.state != "done":
                return status
            self._done[place] = status
        return self._done[place]


def _line(cell: GridCell, statuses: Sequence[CellStatus], jobs: int) -> None:
    """Print one line about a cell that has ended, for logs."""
    status = next(s for s in statuses if s.cell.run == cell.run)
    ended = sum(s.state in ("done", "failed") for s in statuses)
    left = time_left(statuses, jobs)
    eta = f", about {_duration(left)} left" if left else ""
    SCREEN.say(f"[{ended}/{len(statuses)}{eta}] {status.cell}: {status.outcome}")


class _LiveView:
    """What the terminal shows. It reads the run directories once a second, however often it is drawn."""

    def __init__(self, cells: Sequence[IndexedCell], jobs: int) -> None:
        self._read_all, self._jobs = _StatusReader(cells), jobs
        self._last_read, self._statuses = 0.0, self._read_all()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if time.monotonic() - self._last_read > REFRESH:
            self._statuses = self._read_all()
            self._last_read = time.monotonic()
        yield Group(_counts(self._statuses, self._jobs), _bars(self._statuses), _means(self._statuses))


def status_table(statuses: Sequence[CellStatus]) -> None:
    """Print the status of a benchmark to standard output."""
    console = Console() if sys.stdout.isatty() else Console(width=200)
    running = max(1, sum(s.state == "running" for s in statuses))
    console.print(_counts(statuses, running), _bars(statuses), _means(statuses), sep="\n")
    for status in statuses:
        if status.state in ("failed", "stopped"):
            what = status.error or f"no progress since step {status.step} of {status.steps}"
            console.print(Text(inert(f"{status.state}: {status.cell.run.path.name}: {what}")))


def _counts(statuses: Sequence[CellStatus], jobs: int) -> Text:
    counts = Counter(s.state for s in statuses)
    left = time_left(statuses, jobs)
    texts = [f"{counts[state]} {state}" for state in ORDER if counts[state]]
    return Text(" · ".join([*texts, f"about {_duration(left)} left"] if left else texts))


def _bars(statuses: Sequence[CellStatus]) -> Table:
    table = Table.grid(padding=(0, 1))
    for s in statuses:
        if s.state == "running":
            name = f"{s.cell.method} · {s.cell.held_out or 'none'} · {s.cell.seed}"
            bar = ProgressBar(total=max(1, s.steps), completed=s.step, width=30)
            left = _duration(s.seconds_left) if s.seconds_left is not None else "?"
            table.add_row(Text(inert(name)), bar, Text(f"{s.step}/{s.steps}"), Text(f"{left} left", style="dim"))
    return table


def _means(statuses: Sequence[CellStatus]) -> Table:
    table = Table(header_style="bold")
    table.add_column("Mean so far")
    columns = {name: means(statuses, key) for key, name in METRICS}
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column("Runs", justify="right")
    for method, (_, runs) in columns["Acc"].items():
        shares = [f"{100 * column[method][0]:.1f}" if method in column else "-" for column in columns.values()]
        table.add_row(Text(inert(method)), *shares, str(runs))
    return table


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
