"""Tails: one function, one branch per value of the attribute."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Station, leaf, polar
from ltds.bestiary.measures import Measures


def draw_tail(figure: Figure, m: Measures, x: float, y: float, back: float) -> None:
    """Add the tail at (x, y); `back` is the angle that points away from the body."""
    shape = m.kind.tail
    swing = back + m.pose.tail
    if shape == "short":
        role = "belly" if m.kind.legs == 4 else "main"
        figure.patch(leaf(x, y, swing + 0.5, 0.19 * m.pose.extras, 0.15), role)
    elif shape in ("long", "tufted") and m.kind.legs == 4:
        _rope(figure, m, x, y, swing)
    elif shape == "long":
        figure.patch(leaf(x, y, back + 0.3 * m.pose.tail, 0.75 * m.pose.extras, 0.17), "belly")
        figure.patch(leaf(x, y, back - 0.1 + 0.3 * m.pose.tail, 0.6 * m.pose.extras, 0.15), "mark")
    elif shape == "bushy" and m.kind.legs == 4:
        _brush(figure, m, x, y, swing)
    elif shape == "bushy":
        for k in range(3):
            figure.patch(leaf(x, y, swing - 0.5 + 0.5 * k, 0.34 * m.pose.extras, 0.24), "mark")
    elif shape == "flowing":
        bend = [
            polar(x, y, back - 0.3, 0.1),
            polar(x, y, back - 0.9 + m.pose.tail, 0.32),
            polar(x, y, back - 1.2 + m.pose.tail, 0.6),
        ]
        figure.tube([(x, y, 0.04), (*bend[0], 0.07), (*bend[1], 0.085), (*bend[2], 0.03)], "trim")
    elif shape == "thick":
        _thick(figure, m, x, y, swing)
    elif shape == "curly":
        ring = [polar(x - 0.1, y - 0.02, 0.2 - 1.1 * k, 0.035 + 0.012 * k) for k in range(6)]
        figure.tube([(x + 0.02, y, 0.026), *((*p, 0.024) for p in ring)], "main", steps=2)
    elif shape == "fan":
        _fan(figure, m, x, y, back)


def _rope(figure: Figure, m: Measures, x: float, y: float, swing: float) -> None:
    """A thin tail: a long one is carried high, a tufted one hangs."""
    thin, reach = (0.04, 1.0) if m.kind.tail == "long" else (0.024, 0.75)
    stations: list[Station] = [(x + 0.05, y, thin * 1.3)]
    bends = (0.3, 0.55, 0.85, 1.1) if m.kind.tail == "long" else (-0.5, -0.85, -1.0, -1.1)
    for distance, bend in zip((0.16, 0.36, 0.55, 0.7), bends, strict=True):
        stations.append((*polar(x, y, swing + bend, distance * reach * m.pose.extras), thin))
    tube = figure.tube(stations, "main", marked=m.kind.pattern == "stripes")
    if m.kind.tail == "tufted":
        figure.ball(*stations[-1][:2], 0.06, "trim")
    elif m.kind.pattern == "stripes":
        mark_tube(figure, m, tube, salt=31)


def _brush(figure: Figure, m: Measures, x: float, y: float, swing: float) -> None:
    """A thick brush: it hangs on a level body and stands up on an upright one."""
    lift = 1.3 if m.kind.upright > 0.3 or m.kind.pattern == "saddle" else -0.35
    size = (1.25 if lift > 0 else 0.95) * m.pose.extras
    path = [
        polar(x, y, swing + lift * share, distance * size) for distance, share in ((0.2, 0.5), (0.42, 0.8), (0.62, 1.1))
    ]
    radii = (0.085, 0.115, 0.05)
    stations = [(x + 0.03, y, 0.045), *((*p, r * size) for p, r in zip(path, radii, strict=True))]
    tube = figure.tube(stations, "main", marked=True)
    if m.kind.pattern == "saddle":
        mark_tube(figure, m, tube[::-1])
    elif m.kind.upright < 0.3:
        figure.ball(*path[2], 0.06 * size, "belly", group=figure.groups)


def _thick(figure: Figure, m: Measures, x: float, y: float, swing: float) -> None:
    root = 0.55 * m.radius
    reach = (0.62 + 0.1 * m.kind.length) * m.pose.extras
    down = -0.55 if m.kind.upright > 0.3 else -0.1
    path = [
        polar(x, y, swing * 0.5 + math.pi / 2 + down * share, distance * reach)
        for distance, share in ((0.35, 1.0), (0.7, 1.2), (1.0, 0.9))
    ]
    stations = [(x + 0.1, y, root), (*path[0], root * 0.7), (*path[1], root * 0.42), (*path[2], 0.02)]
    tube = figure.tube(stations, "main", marked=True)
    mark_tube(figure, m, tube, salt=17)


def _fan(figure: Figure, m: Measures, x: float, y: float, back: float) -> None:
    size = 0.85 * m.pose.extras
    for k in range(9):
        angle = -math.pi / 2 - 0.35 + (k - 4) * 0.3 + 0.4 * m.pose.tail
        figure.patch(leaf(x, y, angle, size, 0.26), "belly")
        figure.ball(*polar(x, y, angle, size * 0.82), 0.055, "mark")
