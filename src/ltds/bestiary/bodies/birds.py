"""Two-legged birds, from penguin to ostrich."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.heads import draw_eye
from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.bodies.tails import draw_tail
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Station, along, leaf, polar
from ltds.bestiary.measures import Measures


def draw(figure: Figure, m: Measures) -> None:
    """Add a bird: tail, far leg, body, neck, head, near leg, wing."""
    lean = 0.1 + 1.3 * m.kind.upright
    c, s, half, r = math.cos(lean), math.sin(lean), m.half, m.radius
    spine = ((-half, 0.5 * r), (-0.3 * half, 0.98 * r), (0.4 * half, r), (half, 0.72 * r))
    body = [(u * c, -u * s, w) for u, w in spine]
    ground = body[1][1] * 0.6 + 0.75 * r + m.leg
    draw_tail(figure, m, *body[0][:2], math.pi - lean)
    _leg(figure, m, 0.1, ground, m.pose.stride[0], far=True)
    _leg(figure, m, -0.02, ground, m.pose.stride[1], far=False)
    group = figure.group()
    curve = figure.tube(body, "main", group=group, marked=True)
    if m.kind.belly != m.kind.main and m.kind.tail != "fan":
        front = [along(body, t, 0.42) for t in (0.1, 0.5, 0.98)]
        figure.tube([(x, y, 0.55 * w) for x, y, w in front], "belly", group=group, marked=True, steps=2)
    if m.kind.pattern != "plain":
        mark_tube(figure, m, curve)
    x, y = _neck(figure, m, body, group)
    _head(figure, m, x, y)
    root = along(body, 0.82, -0.05)
    folded = math.pi - lean + 0.25 * m.pose.tail
    figure.patch(leaf(root[0], root[1], folded, 1.75 * half * m.pose.extras, 1.15 * r), "mark")


def _leg(figure: Figure, m: Measures, shift: float, ground: float, stride: float, *, far: bool) -> None:
    """A thin leg with a backward knee and a flat foot."""
    top, foot = (shift, ground - m.leg - 0.1), shift + 0.45 * stride * m.leg
    knee = ((shift + foot) / 2 - 0.06 * m.leg, ground - 0.5 * m.leg)
    wide, group = max(0.022, m.limb * 0.7), figure.group()
    figure.tube([(*top, wide * 1.2), (*knee, wide), (foot, ground, wide)], "trim", group=group, far=far, steps=1)
    figure.tube(
        [(foot - 0.03, ground, wide), (foot + 0.12, ground + 0.01, wide)], "trim", group=group, far=far, steps=1
    )


def _neck(figure: Figure, m: Measures, body: list[Station], group: int) -> tuple[float, float]:
    """Add the neck, a curve like an S where it is long, and return the middle of the head."""
    x, y, w = along(body, 0.96, -0.1)
    rise = -(0.35 + 1.2 * m.kind.carriage) + 0.5 * m.pose.neck
    reach = m.neck + 0.5 * m.head + 0.25 * w
    hx, hy = polar(x, y, rise, reach)
    curve = 0.3 * m.neck
    first, second = polar(x, y, rise + 0.35, reach * 0.35 + 0.2 * curve), polar(x, y, rise - 0.3, reach * 0.75)
    thin = 0.04 + 0.02 * m.kind.size if m.kind.neck > 0.3 else 0.8 * m.head
    figure.tube([(x, y, 0.5 * w), (*first, max(thin, 0.22 * w)), (*second, thin), (hx, hy, thin)], "main", group=group)
    return hx, hy


def _head(figure: Figure, m: Measures, x: float, y: float) -> None:
    r, nod = m.head * (0.85 if m.kind.neck > 0.3 else 1.05), 0.12 + 0.7 * m.pose.head
    if m.kind.crest:
        for k in range(3):
            tip = polar(x, y, nod - 1.3 - 0.35 * k, r * 2.2)
            figure.tube([(x, y, 0.018), (*tip, 0.018)], "mark", steps=1)
            figure.ball(*tip, 0.035, "mark")
    if m.kind.ears == "pointed":
        for shift in (-1.15, -2.2):
            figure.patch(leaf(*polar(x, y, nod + shift, r * 0.6), nod + shift, r * 0.95, r * 0.7), "main")
    long = r * (0.45 + 3.6 * m.kind.beak) * m.pose.extras
    hook = 0.5 if 0.3 < m.kind.beak < 0.5 and m.kind.upright < 0.9 else 0.05
    root = polar(x, y, nod, r * 0.6)
    tip = polar(*root, nod + hook, long)
    mid = polar(*root, nod, long * 0.5)
    figure.tube([(*root, r * 0.52), (*mid, r * (0.3 if m.kind.beak > 0.6 else 0.42)), (*tip, 0.012)], "trim")
    figure.ball(x, y, r, "main", marked=False)
    if m.kind.head > 0.9:
        figure.ball(*polar(x, y, nod, 0.3 * r), 0.62 * r, "belly", group=figure.groups)
    draw_eye(figure, *polar(x, y, nod - 0.5, r * 0.35), max(0.036, (0.3 if m.kind.head > 0.9 else 0.22) * r))
