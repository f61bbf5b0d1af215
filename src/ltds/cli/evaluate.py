"""`ltds evaluate`: compute metrics again from stored predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltds.cli.screen import SCREEN


def evaluate(runs: Annotated[list[Path], typer.Argument(help="Run directories.")]) -> None:
    """Compute the metrics of runs again from their stored predictions. Needs no model and no images.

    Example: ltds evaluate runs/agg runs/dc
    """
    from ltds.cli.report import show
    from ltds.evaluation import evaluate as evaluate_run
    from ltds.reporting.collection import collect

    with SCREEN.track("Evaluating", len(runs)) as advance:
        for path in runs:
            evaluate_run(path)
            advance(note=path.name)
    show(collect(runs))
