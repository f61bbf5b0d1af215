"""Mean ranks on a line; a bar joins methods that do not differ significantly in Nemenyi's test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.significance import cliques
from ltds.reporting.answer import ACC_U
from ltds.reporting.comparison_table import p_equals
from ltds.reporting.figures.axes_svg import WIDTH, Scale, document, of_method, text
from ltds.reporting.figures.canvas import COLOURS, GREY, INK, new_figure, shortened
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.ranking import ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN, LINE = 148.0, 38.0  # points beside the line, for names, and above it
LETTERS = f' font-size="9" fill="{INK}"'


def draw(context: FigureContext) -> Iterator[Drawing]:
    ranked = ranking(context.dataset, ACC_U)
    if ranked is None or len(ranked.mean_ranks) < 3 or ranked.blocks < 2:
        return
    means = list(ranked.mean_ranks.values())
    by_rank = sorted(ranked.mean_ranks.items(), key=lambda item: item[1])
    shown = means, list(ranked.mean_ranks), ranked.gap, cliques(means, ranked.gap)
    yield Drawing(
        partial(critical_difference_figure, *shown),
        "Mean ranks in Acc-U",
        f"Over {ranked.blocks} pairs of held-out domain and seed that every method has; Friedman test: "
        f"{p_equals(ranked.friedman_p)}. Methods joined by a bar do not differ significantly in Nemenyi's test. The "
        "test assumes independent pairs, so the true critical difference is at least as large as the one drawn.",
        "; ".join(f"{name}: {rank:.2f}" for name, rank in by_rank) + f"; critical difference {ranked.gap:.2f}.",
        page_svg=critical_difference_svg(*shown),
    )


def critical_difference_svg(
    mean_ranks: Sequence[float], methods: Sequence[str], gap: float, joined: Sequence[tuple[float, float]]
) -> str:
    """As `critical_difference_figure`, for the page."""
    count = len(methods)
    left = math.ceil(count / 2)
    at = Scale(1, count, MARGIN, WIDTH - MARGIN)
    ends = [(float(at(first)), float(at(last))) for first, last in joined]
    below = LINE + 12 + 11 * len(joined)
    parts = [*_ruler_svg(at, count, gap)]
    for i, (first, last) in enumerate(ends):
        path = f"M{first:.1f} {LINE + 11 * (i + 1):g}H{last:.1f}"
        parts.append(f'<path d="{path}" stroke="{COLOURS[1]}" stroke-width="4" stroke-linecap="round"/>')
    for i, method in enumerate(np.argsort(mean_ranks, kind="stable").tolist()):
        is_left = i < left
        y = below + 16 * (i if is_left else count - 1 - i)
        x, end = float(at(mean_ranks[method])), MARGIN - 10 if is_left else WIDTH - MARGIN + 10
        rank, name = f"{mean_ranks[method]:.2f}", shortened(methods[method])
        side = "end" if is_left else ""
        words = f"{name}\u2002{rank}" if is_left else f"{rank}\u2002{name}"
        parts.append(
            f'<g{of_method(methods[method])}><path d="M{x:.1f} {LINE:g}V{y:g}H{end:g}" fill="none" stroke="{GREY}" '
            f'stroke-width=".9"/><circle cx="{x:.1f}" cy="{LINE:g}" r="2.5" fill="{COLOURS[0]}"/>'
            f"{text(end - 4 if is_left else end + 4, y + 3, words, side, LETTERS)}</g>"
        )
    return document(below + 16 * left, parts)


def _ruler_svg(at: Scale, count: int, gap: float) -> Iterator[str]:
    """As `_ruler`."""
    start, end = float(at(1)), float(at(1 + min(gap, count - 1)))
    yield text(start, 9, _gap_words(gap, count), more=f' fill="{INK}"')
    length = f"M{start:.1f} 11v7m0 -3.5H{end:.1f}m0 -3.5v7"
    yield f'<path d="{length}" fill="none" stroke="{COLOURS[1]}" stroke-width="1.6"/>'
    yield f'<path d="M{start:.1f} {LINE:g}H{float(at(count)):.1f}" stroke="{INK}" stroke-width="1.2"/>'
    for rank in range(1, count + 1):
        x = float(at(rank))
        yield f'<path d="M{x:.1f} {LINE:g}v-4" stroke="{INK}"/>'
        yield text(x, LINE - 6.5, str(rank), "middle")


def _gap_words(gap: float, count: int) -> str:
    return f"critical difference {gap:.2f}{' (longer than the line)' if gap > count - 1 else ''}"


def critical_difference_figure(
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
    axes.text(1, 0.72, _gap_words(gap, count), ha="left", va="bottom", fontsize=8, color=INK)
