"""Mean ranks on a line; a bar joins methods that do not differ significantly in Nemenyi's test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.significance import cliques
from ltds.reporting.answer import ACC_U
from ltds.reporting.comparison_table import p_text
from ltds.reporting.figures.canvas import COLOURS, GREY, INK, new_figure, shortened
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.ranking import ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(context: FigureContext) -> Iterator[Drawing]:
    ranked = ranking(context.dataset, ACC_U)
    if ranked is None or len(ranked.mean_ranks) < 3 or ranked.blocks < 2:
        return
    means = list(ranked.mean_ranks.values())
    by_rank = sorted(ranked.mean_ranks.items(), key=lambda item: item[1])
    yield Drawing(
        critical_difference(means, list(ranked.mean_ranks), ranked.gap, cliques(means, ranked.gap)),
        "Mean ranks in Acc-U",
        f"Over {ranked.blocks} pairs of held-out domain and seed that every method has; Friedman test: p = "
        f"{p_text(ranked.friedman_p)}. Methods joined by a bar do not differ significantly in Nemenyi's test. The test "
        "assumes independent pairs, so the true critical difference is at least as large as the one drawn.",
        "; ".join(f"{name}: {rank:.2f}" for name, rank in by_rank) + f"; critical difference {ranked.gap:.2f}.",
    )


def critical_difference(
    mean_ranks: Sequence[float], methods: Sequence[str], gap: float, joined: Sequence[tuple[float, float]]
) -> Figure:
    """A line from rank 1 (left, best) to M with the mean rank of each method, the critical `gap`, and the bars.

    mean_ranks (M,) in the order of `methods`; `joined`: (first, last) mean rank of each bar.
    """
    count = len(methods)
    order = np.argsort(mean_ranks, kind="stable")
    left = math.ceil(count / 2)
    bars = 0.3 * len(joined) + 0.25
    depth = bars + 0.42 * left
    figure = new_figure(9, 0.9 + 0.62 * depth)
    axes = figure.subplots()
    margin = 0.42 * max(1, count - 1)
    axes.set_xlim(1 - margin, count + margin)
    axes.set_ylim(-depth, 0.95)
    axes.axis("off")
    _ruler(axes, count, gap)
    for i, (first, last) in enumerate(joined):
        y = -0.25 - 0.3 * i
        axes.plot([first, last], [y, y], color=COLOURS[1], linewidth=4, solid_capstyle="round")
    for i, method in enumerate(order):
        is_left = i < left
        y = -bars - 0.42 * (i if is_left else count - 1 - i) - 0.1
        end = 1 - 0.06 * margin if is_left else count + 0.06 * margin
        rank = mean_ranks[method]
        shown = tag(method=methods[method])
        axes.plot([rank, rank, end], [0, y, y], color=GREY, linewidth=0.9, gid=shown)
        axes.plot([rank], [0], "o", color=COLOURS[0], markersize=5, gid=shown)
        name = shortened(methods[method])
        text = f"{name}  {rank:.2f}" if is_left else f"{rank:.2f}  {name}"
        side = "right" if is_left else "left"
        axes.text(end, y, text, ha=side, va="center", fontsize=9, color=INK, parse_math=False, gid=shown)
    return figure


def _ruler(axes: Axes, count: int, gap: float) -> None:
    """Integer ranks above the line, and the length of the critical gap above them."""
    axes.plot([1, count], [0, 0], color=INK, linewidth=1.2)
    for rank in range(1, count + 1):
        axes.plot([rank, rank], [0, 0.09], color=INK, linewidth=1)
        axes.text(rank, 0.16, str(rank), ha="center", va="bottom", fontsize=8, color=GREY)
    shown = min(gap, count - 1)
    axes.plot([1, 1 + shown], [0.62, 0.62], color=COLOURS[1], linewidth=1.6, marker="|", markersize=7)
    more = " (longer than the line)" if gap > count - 1 else ""
    words = f"critical difference {gap:.2f}{more}"
    axes.text(1, 0.72, words, ha="left", va="bottom", fontsize=8, color=INK)
