"""Mean ranks on a line: methods that a bar joins are not told apart by Nemenyi's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltds.reporting.figures.canvas import COLOURS, INK, QUIET, blank, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def critical_difference(
    mean_ranks: Sequence[float], methods: Sequence[str], gap: float, joined: Sequence[tuple[float, float]]
) -> Figure:
    """A line from rank 1 (left, best) to M with each method's mean rank, the critical `gap`, a bar for each stretch.

    mean_ranks (M,) in the order of `methods`; `joined` are (first, last) mean ranks less than `gap` apart.
    """
    count = len(methods)
    order = np.argsort(mean_ranks, kind="stable")
    left = math.ceil(count / 2)
    bars = 0.3 * len(joined) + 0.25
    depth = bars + 0.42 * left
    figure = blank(9, 0.9 + 0.62 * depth)
    axes = figure.subplots()
    margin = 0.42 * max(1, count - 1)
    axes.set_xlim(1 - margin, count + margin)
    axes.set_ylim(-depth, 0.95)
    axes.axis("off")
    _ruler(axes, count, gap)
    for place, (first, last) in enumerate(joined):
        y = -0.25 - 0.3 * place
        axes.plot([first, last], [y, y], color=COLOURS[1], linewidth=4, solid_capstyle="round")
    for place, method in enumerate(order):
        is_left = place < left
        y = -bars - 0.42 * (place if is_left else count - 1 - place) - 0.1
        end = 1 - 0.06 * margin if is_left else count + 0.06 * margin
        rank = mean_ranks[method]
        axes.plot([rank, rank, end], [0, y, y], color=QUIET, linewidth=0.9)
        axes.plot([rank], [0], "o", color=COLOURS[0], markersize=5)
        name = shortened(methods[method])
        text = f"{name}  {rank:.2f}" if is_left else f"{rank:.2f}  {name}"
        side = "right" if is_left else "left"
        axes.text(end, y, text, ha=side, va="center", fontsize=9, color=INK, parse_math=False)
    return figure


def _ruler(axes: Axes, count: int, gap: float) -> None:
    """Whole ranks above the line, and the length of the critical gap above them."""
    axes.plot([1, count], [0, 0], color=INK, linewidth=1.2)
    for rank in range(1, count + 1):
        axes.plot([rank, rank], [0, 0.09], color=INK, linewidth=1)
        axes.text(rank, 0.16, str(rank), ha="center", va="bottom", fontsize=8, color=QUIET)
    shown = min(gap, count - 1)
    axes.plot([1, 1 + shown], [0.62, 0.62], color=COLOURS[1], linewidth=1.6, marker="|", markersize=7)
    more = " (longer than the line)" if gap > count - 1 else ""
    words = f"critical difference {gap:.2f}{more}"
    axes.text(1, 0.72, words, ha="left", va="bottom", fontsize=8, color=INK)
