"""Curves over steps as SVG text: a page has a figure for each method, for which matplotlib would take seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.axes_svg import (
    LEGEND_ROW,
    STROKES,
    WIDTH,
    Scale,
    document,
    polyline,
    text,
    x_axis,
    y_axis,
)
from ltds.reporting.figures.canvas import INK, shortened

HEIGHT = 172.0  # points, of a panel without its legend
LEFT, TOP, BOTTOM = 34.0, 20.0, 30.0  # of a panel: numbers, title, numbers and the name of the axis
GAP, COLUMNS, TICKS = 14.0, 3, 5


@dataclass(frozen=True)
class SvgCurve:
    """Steps and values (P,), how the line is drawn, and the held-out domain by which the page filters."""

    steps: FloatArray
    values: FloatArray
    colour: str
    dash: str
    domain: str = ""


@dataclass(frozen=True)
class SvgPanel:
    """Curves in one pair of axes; `names` are explained below it, each by the look of a curve.

    `limits`: of the values; None: from 0, or the lowest value, to the highest. `empty`: words where there is no curve.
    """

    title: str
    curves: Sequence[SvgCurve]
    names: Sequence[tuple[str, SvgCurve]]
    limits: tuple[float, float] | None = None
    empty: str = ""


def curves_svg(panels: Sequence[SvgPanel]) -> str:
    """The panels side by side, each with its legend below."""
    rows = max((-(-len(panel.names) // COLUMNS) for panel in panels), default=0)
    height = HEIGHT + LEGEND_ROW * rows + 4
    wide = (WIDTH - GAP * (len(panels) - 1)) / len(panels)
    return document(height, (part for i, panel in enumerate(panels) for part in _panel(panel, i * (wide + GAP), wide)))


def _panel(panel: SvgPanel, x: float, wide: float) -> Iterator[str]:
    left, right, top, bottom = x + LEFT, x + wide - 4, TOP, HEIGHT - BOTTOM
    yield text(left, 12, panel.title, more=f' font-size="9" fill="{INK}"')
    last = max((float(curve.steps.max()) for curve in panel.curves if len(curve.steps)), default=1.0) or 1.0
    across, up = Scale(0, last, left, right), Scale(*(panel.limits or _limits(panel.curves)), bottom, top)
    yield from y_axis(up, left, right, count=TICKS)
    yield from x_axis(across, bottom, "Step", TICKS)
    for curve in panel.curves:
        yield _curve(curve, across, up)
    if panel.empty and not panel.curves:
        yield text((left + right) / 2, (top + bottom) / 2, panel.empty, "middle", ' font-size="9"')
    yield from _names(panel.names, x, wide)


def _limits(curves: Sequence[SvgCurve]) -> tuple[float, float]:
    """From 0, or the lowest value if that is below, to a little above the highest; what is not finite is ignored."""
    values = [float(v) for curve in curves for v in curve.values.tolist() if math.isfinite(v)]
    low, high = min([0.0, *values]), max(values, default=1.0)
    return low, high + 0.05 * (high - low) if high > low else low + 1.0


def _curve(curve: SvgCurve, across: Scale, up: Scale) -> str:
    """A line through the finite points; a dot where there is only one."""
    x, y = across(curve.steps), up(curve.values)
    where = f' data-domain="{escape(curve.domain)}"' if curve.domain else ""
    finite = np.flatnonzero(np.isfinite(y))
    if len(finite) == 1:
        at = finite[0]
        return f'<circle cx="{x[at]:.1f}" cy="{y[at]:.1f}" r="1.8" fill="{curve.colour}"{where}/>'
    return polyline(x, y, f'stroke="{curve.colour}" stroke-width="1.2"{STROKES[curve.dash]}{where}')


def _names(names: Sequence[tuple[str, SvgCurve]], x: float, wide: float) -> Iterator[str]:
    step = (wide - 4) / COLUMNS
    for i, (name, curve) in enumerate(names):
        at, y = x + 4 + step * (i % COLUMNS), HEIGHT + LEGEND_ROW * (i // COLUMNS) + 8
        look = f'stroke="{curve.colour}" stroke-width="1.4"{STROKES[curve.dash]}'
        yield f'<path d="M{at:.1f} {y - 2.8:.1f}h16" fill="none" {look}/>'
        yield text(at + 20, y, shortened(name, 20), more=f' fill="{INK}"')
