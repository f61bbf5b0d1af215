"""Fréchet distance between source domains over training: do they come together or drift apart?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import INK, QUIET, blank, key, quiet, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """epochs (T,) done; mean, nearest and farthest (T,): distances over all pairs of domains."""

    epochs: Floats
    mean: Floats
    nearest: Floats
    farthest: Floats


def frechet(drifts: Mapping[str, Drift]) -> Figure:
    """A line for each method, the mean over pairs of domains, in a band from the nearest pair to the farthest."""
    figure = blank(9, 3.4)
    axes = figure.subplots()
    quiet(axes)
    handles = []
    for place, drift in enumerate(drifts.values()):
        colour, dash, marker = style(place)
        axes.fill_between(drift.epochs, drift.nearest, drift.farthest, color=colour, alpha=0.12, linewidth=0)
        handles += axes.plot(drift.epochs, drift.mean, dash, color=colour, linewidth=1.8, marker=marker, markersize=3.5)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Epochs done", fontsize=9, color=QUIET)
    axes.set_ylabel("Fréchet distance", fontsize=9, color=INK)
    key(axes, handles, list(drifts))
    return figure
