"""A matrix of percentages as SVG text: a page shows many of them, for which matplotlib would take too long."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape

from ltds.evaluation.arrays import BoolArray, FloatArray
from ltds.reporting.figures.axes_svg import WIDTH, document, text, text_width
from ltds.reporting.figures.canvas import ABSENT, INK, NAMED_CLASSES, shortened

ROW = 19.0  # points: the height of a row
SCALE = 22.0  # points at the top, for the scale
STEPS = 11  # colours: a step is ten points
# Yellow, green, blue: the ends and middle of matplotlib's YlGnBu.
STOPS = ((255, 255, 217), (199, 233, 180), (65, 182, 196), (34, 94, 168), (8, 29, 88))
DARK = 55.0  # percent from which a cell is dark
ON_DARK, ON_LIGHT = "#ffd27a", "#b4430a"  # colours of a dot


def matrix_svg(values: FloatArray, marked: BoolArray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """A cell for each of the values (R,C) in percent, grey where NaN, with a dot where `marked` (R,C)."""
    names = [shortened(name) for name in rows]
    left = max(map(text_width, names), default=0) + 10
    wide = (WIDTH - left - 4) / max(1, len(columns))
    below, labels = column_labels(columns, left, wide, SCALE + ROW * len(rows))
    height = SCALE + ROW * len(rows) + below
    parts = [
        *colour_scale("Accuracy %", "0", "100"),
        *_cells(values, marked, left, wide),
        *(text(left - 5, SCALE + ROW * (i + 0.5) + 3, name, "end") for i, name in enumerate(names)),
        *labels,
    ]
    return document(height, parts)


def colour(percent: float) -> str:
    """The colour of a value in 0..100, in steps of ten points."""
    return _shade(round(min(100.0, max(0.0, percent)) / 100 * (STEPS - 1)))


@lru_cache(maxsize=STEPS)
def _shade(step: int) -> str:
    place = step / (STEPS - 1) * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    mixed = (a + (b - a) * (place - low) for a, b in zip(STOPS[low], STOPS[low + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def _cells(values: FloatArray, marked: BoolArray, left: float, wide: float) -> Iterator[str]:
    size = max(0.6, min(1.5, wide / 5))
    look = f'width="{wide - 0.4:.1f}" height="{ROW - 0.6:g}"'
    for r, (row, dots) in enumerate(zip(values.tolist(), marked.tolist(), strict=True)):
        y = SCALE + r * ROW
        for c, (value, dotted) in enumerate(zip(row, dots, strict=True)):
            x = left + c * wide
            fill = ABSENT if math.isnan(value) else colour(value)
            yield f'<rect x="{x:.1f}" y="{y:g}" {look} fill="{fill}"/>'
            if dotted:
                dot = ON_DARK if value >= DARK else ON_LIGHT
                yield f'<circle cx="{x + wide / 2:.1f}" cy="{y + ROW / 2:g}" r="{size:.1f}" fill="{dot}"/>'


def colour_scale(name: str, least: str, most: str) -> Iterator[str]:
    """Eleven small boxes at the top right, and what the first and the last stand for."""
    start = WIDTH - 26 - 14 * STEPS
    yield text(start - 4, 11, f"{name}\u00a0\u00a0 {least}", "end", f' fill="{INK}"')
    for i in range(STEPS):
        yield f'<rect x="{start + 14 * i:g}" y="3" width="14" height="9" fill="{colour(10.0 * i)}"/>'
    yield text(start + 4 + 14 * STEPS, 11, most)


def column_labels(columns: Sequence[str], left: float, wide: float, top: float) -> tuple[float, list[str]]:
    """The space below the matrix, and the names in it; too many are replaced by a note on their order."""
    if len(columns) > NAMED_CLASSES:
        note = f"{len(columns)} classes, from most to fewest training images"
        return 20.0, [f'<text x="{(left + WIDTH) / 2:.1f}" y="{top + 13:g}" text-anchor="middle">{note}</text>']
    names = [shortened(name) for name in columns]
    size = min(8.0, 0.85 * wide)
    labels = []
    for i, name in enumerate(names):
        x, y = left + wide * (i + 0.5) + size / 3, top + 5
        turn = f'font-size="{size:.1f}" text-anchor="end" transform="rotate(-90 {x:.1f} {y:g})"'
        labels.append(f'<text x="{x:.1f}" y="{y:g}" {turn}>{escape(name)}</text>')
    return max(map(text_width, names), default=0) * size / 8 + 12, labels
