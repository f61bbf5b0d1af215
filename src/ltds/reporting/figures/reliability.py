"""Reliability: does a confidence of 80 % mean right in 80 of 100 cases?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import COLOURS, INK, QUIET, blank, quiet, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reliability:
    """images (B,) in each of B equal bins of confidence, their mean confidence and accuracy (B,), NaN where empty."""

    images: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats
    ece: float


def reliability(cases: Mapping[str, Reliability]) -> Figure:
    """A panel for each method: bars of accuracy, a mark at the mean confidence of each bin, and how full bins are."""
    figure = blank(max(4.5, 2.9 * len(cases)), 3.7)
    upper, lower = figure.subplots(2, len(cases), squeeze=False, sharex=True, height_ratios=[3, 1])
    for place, (method, case) in enumerate(cases.items()):
        bins = len(case.images)
        middles = (np.arange(bins) + 0.5) / bins
        full = np.flatnonzero(case.images)
        axes = upper[place]
        quiet(axes)
        axes.plot([0, 1], [0, 100], color=QUIET, linewidth=0.9, linestyle="--")
        axes.bar(middles[full], case.accuracy[full] * 100, width=0.85 / bins, color=COLOURS[0], alpha=0.75)
        gap = (case.accuracy[full] * 100, case.confidence[full] * 100)
        axes.vlines(case.confidence[full], *gap, color=COLOURS[1], linewidth=1.4)
        axes.plot(case.confidence[full], case.confidence[full] * 100, "D", color=COLOURS[1], markersize=3)
        axes.set_ylim(0, 100)
        axes.set_xlim(0, 1)
        axes.set_title(shortened(method, 34), fontsize=9, color=INK, loc="left", parse_math=False)
        axes.text(0.04, 92, f"ECE {100 * case.ece:.1f}", fontsize=8, color=INK)
        quiet(lower[place])
        lower[place].bar(middles, case.images / max(1, case.images.sum()) * 100, width=0.85 / bins, color="#c4c8cf")
        lower[place].set_xlabel("Confidence (max softmax)", fontsize=8, color=QUIET)
    upper[0].set_ylabel("Accuracy %", fontsize=9, color=INK)
    lower[0].set_ylabel("Images %", fontsize=9, color=INK)
    return figure
