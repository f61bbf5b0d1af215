"""Accuracy from head to tail: what each method does with classes that have few training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import INK, blank, key, label_classes, quiet, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def frequency(
    images: NDArray[np.float64], accuracy: NDArray[np.float64], methods: Sequence[str], classes: Sequence[str]
) -> Figure:
    """A line for each method over classes sorted by training images. images (C,), accuracy (M,C), NaN is no value.

    Dots are classes; a line is the running mean over about a tenth of them.
    """
    order = np.argsort(-images, kind="stable")
    figure = blank(9, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    quiet(upper)
    quiet(lower)
    handles = []
    for m, row in enumerate(accuracy[:, order] * 100):
        colour, dash, _ = style(m)
        upper.scatter(range(len(row)), row, s=9, color=colour, alpha=0.35, linewidths=0, rasterized=len(row) > 300)
        handles += upper.plot(running_mean(row, max(3, len(row) // 10)), dash, color=colour, linewidth=1.8)
    upper.set_ylim(-2, 102)
    upper.set_ylabel("Accuracy %", fontsize=9, color=INK)
    key(upper, handles, methods)
    lower.bar(range(len(order)), images[order], color="#c4c8cf", width=0.75)
    lower.set_yscale("log")
    lower.tick_params(axis="y", which="minor", left=False)
    lower.set_ylabel("Images", fontsize=9, color=INK)
    label_classes(lower, [classes[c] for c in order])
    return figure


def running_mean(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """(C,) mean over the `width` nearest entries, cut at the ends; NaN entries do not count."""
    known = np.isfinite(values)
    window = np.ones(width)
    total = np.convolve(np.where(known, values, 0), window, mode="full")
    count = np.convolve(known.astype(np.float64), window, mode="full")
    middle = slice((width - 1) // 2, (width - 1) // 2 + len(values))
    mean = np.full(len(values), np.nan)
    np.divide(total[middle], count[middle], out=mean, where=count[middle] > 0)
    return mean
