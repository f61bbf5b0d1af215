"""`ltds demo`: from data to report on the built-in dataset, with nothing to download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN

METHODS = ("agg", "ltds")
HELD_OUT = "woodblock"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report page.")] = Path("runs/demo"),
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting for both runs, e.g. --set schedule.epochs=5.")
    ] = None,
) -> None:
    """Build the built-in dataset, train two methods with one domain held out, and compare them on a page.

    Example: ltds demo --out runs/demo

    Takes a few minutes on two CPU cores. If it is stopped, the same command continues it.
    """
    from ltds.api import train
    from ltds.cli.report import show
    from ltds.core.config import parse_overrides
    from ltds.core.runs import RunDirectory
    from ltds.reporting import collect, write_report

    runs = {method: RunDirectory(out / f"{method}-{HELD_OUT}") for method in METHODS}
    for method, run in runs.items():
        if run.done:
            SCREEN.say(f"{method}: done already ({run.path})")
        elif run.exists:
            SCREEN.say(f"{method}: continuing {run.path}")
            train(resume=run.path, progress=SCREEN)
        else:
            SCREEN.say(f"{method}: training with '{HELD_OUT}' held out")
            settings = parse_overrides(overrides or [])
            train("bestiary", method=method, held_out=HELD_OUT, out=run.path, settings=settings, progress=SCREEN)
    collection = collect([run.path for run in runs.values()])
    page = out / "report.html"
    write_report(collection, [page])
    show(collection)
    print(page)
