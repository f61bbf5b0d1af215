"""Curves over steps as SVG text: a page has a figure for each method, for which matplotlib would take seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.axes_svg import AXIS, GRID, LEGEND_ROW, STROKES, WIDTH, document, nice_ticks, short_number
from ltds.reporting.figures.canvas import INK, shortened

HEIGHT = 172.0  # points, of a panel without its legend
LEFT, TOP, BOTTOM = 34.0, 20.0, 30.0  # of a panel: numbers, title, numbers and the name of the axis
GAP, COLUMNS = 14.0, 3


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
    yield f'<text x="{left:.1f}" y="12" font-size="9" fill="{INK}">{escape(panel.title)}</text>'
    yield f'<text x="{(left + right) / 2:.1f}" y="{HEIGHT - 4:g}" font-size="9" text-anchor="middle">Step</text>'
    last = max((float(curve.steps.max()) for curve in panel.curves if len(curve.steps)), default=1.0) or 1.0
    low, high = panel.limits or _limits(panel.curves)
    across, down = (right - left) / last, (bottom - top) / (high - low)
    for value in nice_ticks(low, high):
        y = bottom - (value - low) * down
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="{GRID}" stroke-width=".8"/>'
        yield f'<text x="{left - 5:.1f}" y="{y + 2.8:.1f}" text-anchor="end">{short_number(value)}</text>'
    for step in nice_ticks(0, last):
        at = left + step * across
        yield f'<path d="M{at:.1f} {bottom:g}v3" stroke="{AXIS}" stroke-width=".8"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 12:.1f}" text-anchor="middle">{short_number(step)}</text>'
    yield f'<path d="M{left:.1f} {top:g}V{bottom:g}H{right:.1f}" fill="none" stroke="{AXIS}" stroke-width=".8"/>'
    for curve in panel.curves:
        yield _curve(curve, left, bottom + low * down, across, down)
    if panel.empty and not panel.curves:
        middle = f'x="{(left + right) / 2:.1f}" y="{(top + bottom) / 2:.1f}"'
        yield f'<text {middle} font-size="9" text-anchor="middle">{escape(panel.empty)}</text>'
    yield from _names(panel.names, x, wide)


def _limits(curves: Sequence[SvgCurve]) -> tuple[float, float]:
    """From 0, or the lowest value if that is below, to a little above the highest; what is not finite is ignored."""
    values = [float(v) for curve in curves for v in curve.values.tolist() if math.isfinite(v)]
    low, high = min([0.0, *values]), max(values, default=1.0)
    return low, high + 0.05 * (high - low) if high > low else low + 1.0


def _curve(curve: SvgCurve, left: float, bottom: float, across: float, down: float) -> str:
    """A line through the finite points; a dot where there is only one."""
    points = zip((left + curve.steps * across).tolist(), (bottom - curve.values * down).tolist(), strict=True)
    shown = [f"{x:.1f},{y:.1f}" for x, y in points if math.isfinite(y)]
    where = f' data-domain="{escape(curve.domain)}"' if curve.domain else ""
    if len(shown) == 1:
        x, y = shown[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="1.8" fill="{curve.colour}"{where}/>'
    look = f'stroke="{curve.colour}" stroke-width="1.2" stroke-linejoin="round"{STROKES[curve.dash]}'
    return f'<polyline points="{" ".join(shown)}" fill="none" {look}{where}/>'


def _names(names: Sequence[tuple[str, SvgCurve]], x: float, wide: float) -> Iterator[str]:
    step = (wide - 4) / COLUMNS
    for i, (name, curve) in enumerate(names):
        at, y = x + 4 + step * (i % COLUMNS), HEIGHT + LEGEND_ROW * (i // COLUMNS) + 8
        look = f'stroke="{curve.colour}" stroke-width="1.4"{STROKES[curve.dash]}'
        yield f'<path d="M{at:.1f} {y - 2.8:.1f}h16" fill="none" {look}/>'
        yield f'<text x="{at + 20:.1f}" y="{y:.1f}" fill="{INK}">{escape(shortened(name, 20))}</text>'
