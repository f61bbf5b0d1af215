"""Cost against quality as SVG text, for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.axes_svg import (
    WIDTH,
    Scale,
    document,
    legend_height,
    marks,
    method_legend,
    of_method,
    polyline,
    x_axis,
    y_axis,
)
from ltds.reporting.figures.canvas import PALE, style

LEFT, GAP, TOP, BOTTOM = 44.0, 36.0, 8.0, 190.0  # points: numbers beside the axes, and the ends of the axes
SPACE = 0.12  # of the range of the marks, around them
Spreads = Sequence[tuple[float, float] | None]


def cost_svg(
    costs: Mapping[str, FloatArray],
    quality: FloatArray,
    measure: str,
    methods: Sequence[str],
    spreads: Mapping[str, Spreads],
    joined: Mapping[str, Sequence[int]],
    span: float,
) -> str:
    """A panel for each kind of cost (M,): a mark for each method at its cost and its quality (M,) in percent.

    NaN: no value, no mark. `spreads`: low and high of each method. `joined`: methods that a line joins, in the order of
    their cost. `span`: of the quality, at least.
    """
    wide = (WIDTH - LEFT - GAP * (len(costs) - 1)) / len(costs)
    up = _quality_scale(costs, quality, span)
    parts: list[str] = []
    for i, (name, values) in enumerate(costs.items()):
        left, right = LEFT + i * (wide + GAP), LEFT + i * (wide + GAP) + wide - 4
        spread, front = spreads.get(name, [None] * len(methods)), list(joined.get(name, []))
        across = _cost_scale(values, quality, spread, left, right)
        parts += [*y_axis(up, left, right, "" if i else measure), *x_axis(across, BOTTOM, name)]
        steps = np.repeat(across(values[front]), 2)[1:], np.repeat(up(quality[front]), 2)[:-1]
        parts.append(polyline(*steps, f'stroke="{PALE}" stroke-width="1.2"'))
        parts += _methods(across, up, values, quality, methods, spread)
    legend = method_legend(methods, BOTTOM + 34, lines=False)
    return document(BOTTOM + 36 + legend_height(methods), [*parts, *legend])


def _methods(
    across: Scale, up: Scale, values: FloatArray, quality: FloatArray, methods: Sequence[str], spread: Spreads
) -> Iterator[str]:
    for m in _known(values, quality):
        colour, _, marker = style(m)
        x, y = across(values[m : m + 1]), up(quality[m : m + 1])
        ends = spread[m]
        if ends:
            low, high = across(np.array(ends)).tolist()
            path = f'<path d="M{low:.1f} {y[0]:.1f}H{high:.1f}" stroke="{colour}" stroke-width="1.4"'
            yield f'{path} stroke-opacity=".6"{of_method(methods[m])}/>'
        yield marks(x, y, marker, 7, colour, of_method(methods[m]))


def _known(values: FloatArray, quality: FloatArray) -> list[int]:
    known: list[int] = np.flatnonzero(np.isfinite(values) & np.isfinite(quality)).tolist()
    return known


def _quality_scale(costs: Mapping[str, FloatArray], quality: FloatArray, span: float) -> Scale:
    """Around all marks, and at least `span` wide, so that a small difference looks small."""
    shown = quality[sorted({m for values in costs.values() for m in _known(values, quality)})]
    low, high = float(shown.min()), float(shown.max())
    space = max(SPACE * (high - low), (span - (high - low)) / 2)
    return Scale(low - space, high + space, BOTTOM, TOP)


def _cost_scale(values: FloatArray, quality: FloatArray, spread: Spreads, left: float, right: float) -> Scale:
    """From 0, so that a small difference looks small; logarithmic where the most is more than ten times the least."""
    ends = [end for m in _known(values, quality) for end in (spread[m] or (float(values[m]),))]
    least, most = min(ends), max(ends)
    if 0 < 10 * least < most:
        space = (most / least) ** SPACE
        return Scale(least / space, most * space, left, right, log=True)
    return Scale(0, (1 + SPACE) * most or 1, left, right)
