"""A benchmark under way, to look at: bars on a terminal, a line for each finished run elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ltds.benchmark.standing import Place, Standing, means, standing_of, time_left
from ltds.cli.screen import SCREEN

if TYPE_CHECKING:
    from ltds.benchmark.grid import Cell

METRICS = (("acc_u", "Acc-U"), ("acc", "Acc"), ("h_oracle", "H oracle"))
REFRESH = 1.0  # seconds between looks at the run directories


@contextmanager
def watching(cells: Sequence[Cell], jobs: int) -> Iterator[Callable[[Cell], None]]:
    """Show the cells while the block runs; call what it gives with each cell that is over."""
    places = [Place(cell.run, cell.method, cell.held_out, cell.seed) for cell in cells]
    if SCREEN.bars:
        with Live(_View(places, jobs), console=Console(stderr=True), refresh_per_second=4, transient=True):
            yield lambda cell: None
        return
    looks = _Looks(places)
    yield lambda cell: _line(cell, looks(), jobs)


class _Looks:
    """Where all cells stand; a done one is read once, however often one looks."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._settled: dict[Place, Standing] = {}

    def __call__(self) -> list[Standing]:
        return [self._look(place) for place in self._places]

    def _look(self, place: Place) -> Standing:
        if place not in self._settled:
            found = standing_of(place)
            if found.state != "done":
                return found
            self._settled[place] = found
        return self._settled[place]


def _line(cell: Cell, standings: Sequence[Standing], jobs: int) -> None:
    """One line of news, for logs."""
    own = next(s for s in standings if s.place.run == cell.run)
    over = sum(s.state in ("done", "failed") for s in standings)
    if own.summary:
        outcome = ", ".join(f"{name} {100 * v:.1f}" for key, name in METRICS if (v := own.summary.get(key)) is not None)
    else:
        outcome = f"FAILED: {own.error}"
    left = time_left(standings, jobs)
    eta = f", about {_duration(left)} left" if left else ""
    SCREEN.say(
        f"[{over}/{len(standings)}{eta}] {cell.method} held out {cell.held_out or 'none'} seed {cell.seed}: {outcome}"
    )


class _View:
    """What the terminal shows; reads the run directories once a second, however often it is drawn."""

    def __init__(self, places: Sequence[Place], jobs: int) -> None:
        self._look, self._jobs = _Looks(places), jobs
        self._read, self._standings = 0.0, self._look()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if time.monotonic() - self._read > REFRESH:
            self._standings = self._look()
            self._read = time.monotonic()
        yield Group(_counts(self._standings, self._jobs), _bars(self._standings), _means(self._standings))


def status_table(standings: Sequence[Standing]) -> None:
    """Where a benchmark stands, on standard output."""
    console = Console() if sys.stdout.isatty() else Console(width=200)
    running = max(1, sum(s.state == "running" for s in standings))
    console.print(_counts(standings, running), _bars(standings), _means(standings), sep="\n")
    for standing in standings:
        if standing.state in ("failed", "stopped"):
            what = standing.error or f"no sign of life since step {standing.step} of {standing.steps}"
            console.print(Text(f"{standing.state}: {standing.place.run.path.name}: {what}"))


def _counts(standings: Sequence[Standing], jobs: int) -> Text:
    counts = Counter(s.state for s in standings)
    left = time_left(standings, jobs)
    parts = [
        f"{counts[state]} {state}" for state in ("done", "running", "stopped", "failed", "waiting") if counts[state]
    ]
    return Text(" · ".join([*parts, f"about {_duration(left)} left"] if left else parts))


def _bars(standings: Sequence[Standing]) -> Table:
    table = Table.grid(padding=(0, 1))
    for s in standings:
        if s.state == "running":
            name = f"{s.place.method} · {s.place.held_out or 'none'} · {s.place.seed}"
            bar = ProgressBar(total=max(1, s.steps), completed=s.step, width=30)
            left = _duration(s.seconds_left) if s.seconds_left is not None else "?"
            table.add_row(Text(name), bar, Text(f"{s.step}/{s.steps}"), Text(f"{left} left", style="dim"))
    return table


def _means(standings: Sequence[Standing]) -> Table:
    table = Table(header_style="bold")
    table.add_column("Mean so far")
    found = {name: means(standings, key) for key, name in METRICS}
    for name in found:
        table.add_column(name, justify="right")
    table.add_column("Runs", justify="right")
    for method, (_, runs) in found["Acc"].items():
        shares = [f"{100 * column[method][0]:.1f}" if method in column else "-" for column in found.values()]
        table.add_row(Text(method), *shares, str(runs))
    return table


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
