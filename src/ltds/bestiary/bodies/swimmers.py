"""Legless bodies: fishes and whales, and the snake."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.heads import draw_eye
from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import along, leaf
from ltds.bestiary.measures import Measures


def swim(figure: Figure, m: Measures) -> None:
    """Add a fish or whale: tail fin, dorsal fin, body, belly, eye, breast fin."""
    half, r, wag = m.half, m.radius, 0.5 * m.pose.tail
    blunt = 0.2 + 0.75 * m.kind.head - 0.35 * m.kind.snout
    fluke = m.kind.tail == "fluke"
    stalk = (-1.25 * half, (-0.9 * r if fluke else 0.0) - wag * 0.3 * half, 0.14 * r)
    body = [
        stalk,
        (-0.75 * half, -0.12 * wag - (0.2 * r if fluke else 0.0), 0.5 * r),
        (-0.1 * half, 0.0, 0.98 * r),
        (0.5 * half, 0.0, 0.9 * r),
        (half, 0.06 * r, blunt * r),
    ]
    _tail_fin(figure, m, *stalk[:2], wag)
    if not fluke:
        tall = (0.25 + 0.9 * m.kind.fins) * r * m.pose.extras
        x, y, _ = along(body, 0.52, -0.8)
        figure.patch(
            [(x - 0.28 * half, y - tall - 0.1 * r), (x + 0.32 * half, y + 0.1 * r), (x - 0.35 * half, y + 0.15 * r)],
            "trim",
        )
    group = figure.group()
    curve = figure.tube(body, "main", group=group, marked=True)
    if m.kind.belly != m.kind.main:
        low = [(x, y + 0.55 * w, 0.45 * w) for x, y, w in body[1:]]
        figure.tube(low, "belly", group=group, steps=2)
    if m.kind.pattern != "plain":
        mark_tube(figure, m, curve)
    fin = along(body, 0.62, 0.45)
    figure.patch(
        leaf(fin[0], fin[1], 2.1 + 0.5 * m.pose.head, (0.22 + 0.3 * m.kind.size) * m.pose.extras, 0.5 * r), "trim"
    )
    eye = along(body, 0.86, -0.25 if not fluke else 0.15)
    draw_eye(figure, eye[0], eye[1], 0.045 if m.kind.size > 0.5 else 0.06)


def _tail_fin(figure: Figure, m: Measures, x: float, y: float, wag: float) -> None:
    size, group = (0.45 * m.radius + 0.2) * m.pose.extras, figure.group()
    if m.kind.tail == "fluke":
        figure.patch(leaf(x, y, -2.6 + wag, size * 0.95, 0.2), "trim", group=group)
        figure.patch(leaf(x, y, -0.9 + wag, size * 0.95, 0.2), "trim", group=group)
        return
    upper = 1.35 if m.kind.fins > 0.8 else 1.0
    for side, long in ((-1, upper), (1, 1.0 if m.kind.fins < 0.8 else 0.8)):
        figure.patch(
            leaf(x + 0.05, y, math.pi - side * -0.75 + wag, size * long, 0.24 + 0.1 * m.radius), "trim", group=group
        )


def crawl(figure: Figure, m: Measures) -> None:
    """Add a snake: waves that end in a raised head."""
    phase, r = m.pose.stride[0] * 2, 0.08 + 0.3 * m.radius
    stations = []
    for k in range(11):
        t = k / 10
        height = 0.3 * math.sin(2.2 * math.pi * t + phase) * (1 - 0.5 * t) * m.pose.depth
        lift = -0.6 * max(0.0, t - 0.62) / 0.38 * (0.8 + 0.5 * m.pose.neck)
        stations.append(
            (-0.75 + (1.25 - 0.2 * max(0.0, t - 0.7)) * t * m.pose.length, height + lift, r * min(1.0, 0.25 + 2.2 * t))
        )
    curve = figure.tube(stations, "main", marked=True)
    mark_tube(figure, m, curve)
    x, y, _ = stations[-1]
    nod, head = 0.1 + m.pose.head, m.head * 0.85
    tip = (x + 0.24 * math.cos(nod), y + 0.24 * math.sin(nod))
    figure.tube([(x, y, head), (*tip, 0.6 * head)], "main", steps=1)
    figure.tube([(*tip, 0.02), (tip[0] + 0.2, tip[1] + 0.06, 0.015)], "trim", steps=1)
    draw_eye(figure, x + 0.08, y - 0.45 * head, 0.045)
