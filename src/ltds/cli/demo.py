"""`ltds demo`: from data to report on the built-in dataset, with nothing to download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError, expected

METHODS = ("agg", "ltds")
HELD_OUT = "woodblock"
EPOCHS = 60  # half of the recipe's: enough to show the order of the two methods in a few minutes


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report page.")] = Path("runs/demo"),
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting for both runs, e.g. --set schedule.epochs=5.")
    ] = None,
) -> None:
    """Build the built-in dataset, train two methods side by side with one domain held out, compare them on a page.

    Example: ltds demo --out runs/demo

    Takes about six minutes on two CPU cores. If it is stopped, the same command continues it.
    """
    from ltds.benchmarking.cells import cells_of
    from ltds.benchmarking.grid import Grid
    from ltds.benchmarking.local import LocalExecutor
    from ltds.cli.benchmark import run_grid
    from ltds.core.config import merge, parse, parse_overrides
    from ltds.data.datasets.opening import open_dataset
    from ltds.reporting import collect, write_report

    if out.exists() and not out.is_dir():
        raise ConfigError(expected(f"'{out}'", "a folder", "a file", "Name another folder."), arguments=["out"])
    manifest = open_dataset("bestiary", SCREEN)
    settings = merge({"schedule": {"epochs": EPOCHS}}, parse_overrides(overrides or []))
    grid = {"data": "bestiary", "methods": METHODS, "held_out": [HELD_OUT], "seeds": [0], "settings": settings}
    cells = cells_of(parse(Grid, grid), out, lambda _: manifest)
    SCREEN.say(f"Training {' and '.join(METHODS)} side by side, with the style '{HELD_OUT}' kept for testing.")
    run_grid(cells, out, LocalExecutor(len(METHODS)), jobs=len(METHODS))
    page = out / "report.html"
    write_report(collect([cell.run.path for cell in cells if cell.run.done]), [page])
    print(page)
