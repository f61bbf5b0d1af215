"""Outlines of tubes, ovals and leaves: everything a creature is made of, as lists of points.

A tube is a chain of stations (x, y, radius). x grows to the right, where the creature looks, y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Station = tuple[float, float, float]
Point = tuple[float, float]
Rim = tuple[float, float, float, float]
"""A point of an outline and the point of the spine that it belongs to: (x, y, spine x, spine y)."""

_CAP = tuple((math.cos(math.pi * k / 6), math.sin(math.pi * k / 6)) for k in range(1, 6))


def smooth_curve(stations: Sequence[Station], steps: int = 3) -> list[Station]:
    """The stations with `steps - 1` more between each two, on a Catmull-Rom curve."""
    last = len(stations) - 1
    curve = [stations[0]]
    for i in range(last):
        p, q, r, s = stations[max(i - 1, 0)], stations[i], stations[i + 1], stations[min(i + 2, last)]
        for k in range(1, steps + 1):
            t = k / steps
            a, b = t * (-1 + t * (2 - t)) / 2, (2 + t * t * (3 * t - 5)) / 2
            c, d = t * (1 + t * (4 - 3 * t)) / 2, t * t * (t - 1) / 2
            x, y, w = (a * p[j] + b * q[j] + c * r[j] + d * s[j] for j in range(3))
            curve.append((x, y, max(w, 0.0)))
    return curve


def tube_rim(stations: Sequence[Station]) -> list[Rim]:
    """The outline of a tube with round ends."""
    last = len(stations) - 1
    left: list[Rim] = []
    right: list[Rim] = []
    for i, (x, y, r) in enumerate(stations):
        dx, dy = _direction(stations[max(i - 1, 0)], stations[min(i + 1, last)])
        left.append((x + dy * r, y - dx * r, x, y))
        right.append((x - dy * r, y + dx * r, x, y))
    return [*left, *_cap(stations[-1], left[-1]), *right[::-1], *_cap(stations[0], right[0])]


def _direction(a: Station, b: Station) -> Point:
    dx, dy = b[0] - a[0], b[1] - a[1]
    norm = math.sqrt(dx * dx + dy * dy) or 1.0
    return dx / norm, dy / norm


def _cap(end: Station, start: Rim) -> list[Rim]:
    """Half a circle around `end`, clockwise on the screen, from `start`."""
    x, y, _ = end
    u, v = start[0] - x, start[1] - y
    return [(x + u * c - v * s, y + v * c + u * s, x, y) for c, s in _CAP]


def oval(x: float, y: float, rx: float, ry: float, tilt: float = 0.0, count: int = 14) -> list[Point]:
    """An ellipse turned by `tilt` radians."""
    c, s = math.cos(tilt), math.sin(tilt)
    turns = (2 * math.pi * k / count for k in range(count))
    ring = ((rx * math.cos(a), ry * math.sin(a)) for a in turns)
    return [(x + u * c - v * s, y + u * s + v * c) for u, v in ring]


def leaf(x: float, y: float, angle: float, length: float, width: float) -> list[Point]:
    """A pointed leaf that starts at (x, y): ears, beaks, feathers, fins."""
    c, s = math.cos(angle), math.sin(angle)
    profile = ((0, 0.35), (0.35, 0.5), (0.7, 0.34), (1, 0), (0.7, -0.34), (0.35, -0.5), (0, -0.35))
    return [(x + u * length * c - v * width * s, y + u * length * s + v * width * c) for u, v in profile]


def polar(x: float, y: float, angle: float, distance: float) -> Point:
    """The point at this angle (radians, 0 right, negative upwards) and distance."""
    return x + math.cos(angle) * distance, y + math.sin(angle) * distance


def along(stations: Sequence[Station], t: float, across: float = 0.0) -> Station:
    """The station at the share `t` of a tube, moved sideways by `across` radii (negative: to its left, the back)."""
    position = min(max(t, 0.0), 1.0) * (len(stations) - 1)
    i = min(int(position), len(stations) - 2)
    f = position - i
    a, b = stations[i], stations[i + 1]
    x, y, r = (a[j] + (b[j] - a[j]) * f for j in range(3))
    dx, dy = _direction(a, b)
    return x - dy * r * across, y + dx * r * across, r
