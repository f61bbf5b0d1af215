"""Axes, marks and legends as SVG text: matplotlib takes a second for a figure that this writes in a millisecond."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.canvas import GREY, GRID, INK, PALE, shortened, style

WIDTH, LETTER = 648.0, 4.7  # points: nine inches, and the width of a small letter
LEGEND_ROW, LEGEND_COLUMNS = 14.4, 4
STROKES = {
    "-": "",
    "--": ' stroke-dasharray="5 2.2"',
    ":": ' stroke-dasharray="1.4 2"',
    "-.": ' stroke-dasharray="6 2 1.4 2"',
}


@dataclass(frozen=True)
class Scale:
    """The values from `low` to `high` lie between the points `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: FloatArray | float) -> FloatArray:
        """Where these values lie."""
        low, high, at = (np.log10(v) if self.log else np.asarray(v) for v in (self.low, self.high, values))
        places: FloatArray = self.start + (at - low) * ((self.end - self.start) / (high - low))
        return places

    def ticks(self, count: int = 7) -> list[float]:
        """About `count` round values; if it is logarithmic, powers of ten and, where there is room, their threefold."""
        if not self.log:
            return nice_ticks(self.low, self.high, count)
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        powers = [10.0**power for power in range(first, last + 1)]
        finer = sorted([*powers, *(3 * power for power in powers)])
        tens, inside = ([v for v in values if self.low <= v <= self.high] for values in (powers, finer))
        if len(inside) < 2:
            return nice_ticks(self.low, self.high, count)
        return inside if len(inside) <= count else tens


def document(height: float, parts: Iterable[str]) -> str:
    """A drawing of the whole width and this height, in points."""
    opening = (
        f'<svg viewBox="0 0 {WIDTH:g} {height:.0f}" font-size="8" fill="{GREY}" font-family="system-ui, sans-serif">'
    )
    return "".join([opening, *parts, "</svg>"])


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """At most about `count` round numbers from `low` to `high`."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(span / count))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if span / (power * factor) <= count)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def short_number(value: float) -> str:
    """The number with as many digits as it needs, thousands as 20 k, millions as 3 M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= max(10_000, size):
            return f"{value / size:.6g}\u2009{unit}"
    return f"{0.0 if value == 0 else value:.6g}"


def text(x: float, y: float, words: str, anchor: str = "", more: str = "") -> str:
    """Words at a point, which is their start, or their "middle" or "end"."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{placed}{more}>{escape(words)}</text>'


def y_axis(scale: Scale, left: float, right: float, name: str = "", count: int = 7) -> Iterator[str]:
    """Lines across at round numbers, the numbers beside them, the axis itself, and its name upright at the left."""
    for value in scale.ticks(count):
        y = float(scale(value))
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="{GRID}" stroke-width=".8"/>'
        yield text(left - 5, y + 2.8, short_number(value), "end")
    corner = f"M{left:.1f} {scale.end:g}V{scale.start:g}H{right:.1f}"
    yield f'<path d="{corner}" fill="none" stroke="{PALE}" stroke-width=".8"/>'
    if name:
        middle = (scale.start + scale.end) / 2
        yield text(10, middle, name, "middle", f' font-size="9" fill="{INK}" transform="rotate(-90 10 {middle:.1f})"')


def x_axis(scale: Scale, bottom: float, name: str, count: int = 7) -> Iterator[str]:
    """Short lines at round numbers, the numbers and the name of the axis below."""
    for value in scale.ticks(count):
        x = float(scale(value))
        yield f'<path d="M{x:.1f} {bottom:g}v3" stroke="{PALE}" stroke-width=".8"/>'
        yield text(x, bottom + 12, short_number(value), "middle")
    yield text((scale.start + scale.end) / 2, bottom + 26, name, "middle", ' font-size="9"')


def polyline(x: FloatArray, y: FloatArray, look: str) -> str:
    """A line through the points that are finite."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in _finite(x, y))
    return f'<polyline points="{points}" fill="none" stroke-linejoin="round" {look}/>'


def bars(x: FloatArray, y: FloatArray, bottom: float, width: float, colour: str) -> str:
    """Bars from `bottom` up to y, x in their middle."""
    path = "".join(f"M{a - width / 2:.1f} {bottom:.1f}V{b:.1f}h{width:.1f}V{bottom:.1f}z" for a, b in _finite(x, y))
    return f'<path d="{path}" fill="{colour}"/>'


def marks(x: FloatArray, y: FloatArray, marker: str, size: float, colour: str, more: str = "") -> str:
    """A mark of this size at each point: o, s, ^ or D."""
    places = _finite(x, y)
    if marker in "os":  # lines of hardly any length with round or square ends
        path, cap = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in places), {"o": "round", "s": "square"}[marker]
        thick = size if marker == "o" else 0.88 * size
        return f'<path d="{path}" stroke="{colour}" stroke-width="{thick:g}" stroke-linecap="{cap}"{more}/>'
    r = 0.6 * size
    shape = f"l{r:g} {2 * r:g}h{-2 * r:g}z" if marker == "^" else f"l{r:g} {r:g}l{-r:g} {r:g}l{-r:g} {-r:g}z"
    path = "".join(f"M{a:.1f} {b - r:.1f}{shape}" for a, b in places)
    return f'<path d="{path}" fill="{colour}"{more}/>'


def of_method(name: str) -> str:
    """The attribute by which the page filters what shows one method."""
    return f' data-method="{escape(name)}"'


def legend_height(methods: Sequence[str]) -> float:
    return LEGEND_ROW * -(-len(methods) // LEGEND_COLUMNS)


def method_legend(methods: Sequence[str], top: float, lines: bool = True, marked: bool = True) -> Iterator[str]:
    """The name of each method beside its line, its mark, or both."""
    for i, name in enumerate(methods):
        colour, dash, marker = style(i)
        row, column = divmod(i, LEGEND_COLUMNS)
        x, y = 6 + (WIDTH - 8) / LEGEND_COLUMNS * column, top + LEGEND_ROW * row + 8
        parts = [f'<path d="M{x:.1f} {y:.1f}h18" stroke="{colour}" stroke-width="1.8"{STROKES[dash]}/>'] * lines
        parts += [marks(np.array([x + 9]), np.array([y]), marker, 5, colour)] * marked
        parts.append(text(x + 23, y + 2.8, shortened(name), more=f' fill="{INK}"'))
        yield f"<g{of_method(name)}>{''.join(parts)}</g>"


def text_width(words: str) -> float:
    """About how wide words are in points, with letters of 8 points: those of some scripts are twice as wide."""
    return sum(2 * LETTER if unicodedata.east_asian_width(letter) in "WF" else LETTER for letter in words)


def _finite(x: FloatArray, y: FloatArray) -> list[tuple[float, float]]:
    return [(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True) if math.isfinite(a) and math.isfinite(b)]
