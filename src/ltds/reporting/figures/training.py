"""Training curves: the terms of the loss, and accuracy on validation images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import COLOURS, INK, QUIET, blank, key, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def training(terms: Mapping[str, Curve], validation: Sequence[Curve]) -> Figure:
    """Left a line for each loss term over steps, right a line for each run's validation accuracy (shares)."""
    figure = blank(9, 2.9)
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "Loss"), (right, "Validation accuracy %")):
        quiet(axes)
        axes.set_title(name, fontsize=9, color=INK, loc="left")
        axes.set_xlabel("Step", fontsize=9, color=QUIET)
    handles = []
    for i, (steps, values) in enumerate(terms.values()):
        handles += left.plot(steps, values, color=COLOURS[i % len(COLOURS)], linewidth=1.4)
    if handles:
        key(left, handles, list(terms))
        left.set_ylim(bottom=min(0, left.get_ylim()[0]))
    for steps, values in validation:
        marker = "o" if len(steps) < 2 else ""
        right.plot(steps, values * 100, color=COLOURS[0], alpha=0.75, linewidth=1.2, marker=marker, markersize=3)
    right.set_ylim(0, 100)
    if not validation:
        right.text(0.5, 0.5, "no validation images", transform=right.transAxes, ha="center", color=QUIET, fontsize=9)
    return figure
