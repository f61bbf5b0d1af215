"""Marks of a pattern, laid along a tube: they bend with the body that carries them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Station, along, oval
from ltds.bestiary.measures import Measures


def mark_tube(figure: Figure, m: Measures, tube: Sequence[Station], *, salt: int = 0) -> None:
    """Lay the kind's pattern on a tube; `salt` makes the irregularity of two tubes differ."""
    length = sum(math.hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(tube))
    thickness = max(r for _, _, r in tube)
    if m.kind.pattern == "stripes":
        _stripes(figure, m, tube, max(3, round(length / 0.13)), salt)
    elif m.kind.pattern == "bands":
        _bands(figure, m, tube, max(1, round(2.6 * m.kind.length / m.kind.depth)))
    elif m.kind.pattern == "spots":
        _blobs(figure, m, tube, 0.022 + 0.045 * m.kind.depth, 2.9, length, thickness, salt)
    elif m.kind.pattern == "patches":
        _blobs(figure, m, tube, 0.05 + 0.14 * m.kind.depth, 2.35, length, thickness, salt)
    elif m.kind.pattern == "saddle":
        figure.mark(_strip(tube, 0.0, 1.0, -1.2, -0.25))


def _grain(m: Measures, index: int) -> float:
    """A number in -1..1 that belongs to this creature's pattern."""
    return 2 * m.pose.grain[index % len(m.pose.grain)] - 1


def _stripes(figure: Figure, m: Measures, tube: Sequence[Station], count: int, salt: int) -> None:
    wide = 0.5 / count
    for i in range(count):
        t = (i + 0.5 + 0.25 * _grain(m, salt + 3 * i)) / count
        slant, reach = 0.06 * _grain(m, salt + 3 * i + 1), 0.75 + 0.3 * _grain(m, salt + 3 * i + 2)
        top, tip = along(tube, t - wide / 2, -1.1), along(tube, t + slant, reach)
        figure.mark([top[:2], along(tube, t + wide / 2, -1.1)[:2], along(tube, t + wide / 3, 0.0)[:2], tip[:2]])


def _bands(figure: Figure, m: Measures, tube: Sequence[Station], count: int) -> None:
    if count == 1:
        figure.mark(_strip(tube, 0.72, 0.97, -1.1, 1.1))
        return
    for i in range(count):
        t = (i + 0.5 + 0.12 * _grain(m, i)) / count
        figure.mark(_strip(tube, t - 0.24 / count, t + 0.24 / count, -1.1, 1.1))


def _strip(tube: Sequence[Station], start: float, end: float, top: float, bottom: float) -> list[tuple[float, float]]:
    shares = [start + (end - start) * k / 4 for k in range(5)]
    return [along(tube, t, top)[:2] for t in shares] + [along(tube, t, bottom)[:2] for t in reversed(shares)]


def _blobs(
    figure: Figure,
    m: Measures,
    tube: Sequence[Station],
    radius: float,
    spacing: float,
    length: float,
    thickness: float,
    salt: int,
) -> None:
    """Blobs on a jittered lattice, every second row shifted by half a step."""
    rows, columns = max(1, round(2 * thickness / (spacing * radius))), max(2, round(length / (spacing * radius)))
    for i in range(min(columns, 12)):
        for j in range(min(rows, 5)):
            g = salt + 7 * i + 3 * j
            t = (i + 0.5 + 0.5 * (j % 2) - 0.25 + 0.2 * _grain(m, g)) / min(columns, 12)
            across = (2 * (j + 0.5 + 0.2 * _grain(m, g + 1)) / min(rows, 5) - 1) * 0.95
            x, y, _ = along(tube, t, across)
            r = radius * (1 + 0.25 * _grain(m, g + 2))
            figure.mark(oval(x, y, r * 1.1, r * 0.9, 2 * _grain(m, g + 3), 8))
