"""`ltds evaluate`: metrics anew from stored predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def evaluate(runs: Annotated[list[Path], typer.Argument(help="Run directories.")]) -> None:
    """Compute the metrics of runs again from their stored predictions, without a model or images."""
    from ltds.cli.report import show
    from ltds.core.runs import RunDirectory
    from ltds.engine.outcome import write_metrics
    from ltds.reporting.collect import collect

    with SCREEN.track("Evaluating", len(runs)) as advance:
        for path in runs:
            write_metrics(RunDirectory(path))
            advance(note=path.name)
    show(collect(runs))
