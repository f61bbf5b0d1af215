"""Six and eight legs: insects from the side, spider and crab from the front."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.heads import draw_eye
from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import leaf, oval, polar
from ltds.bestiary.measures import Measures


def draw(figure: Figure, m: Measures) -> None:
    """Add an insect (six legs) or a spider or crab (eight)."""
    if m.kind.legs == 6:
        _insect(figure, m)
    elif m.kind.claws:
        _crab(figure, m)
    else:
        _spider(figure, m)


def _insect(figure: Figure, m: Measures) -> None:
    half, r, head = m.half, m.radius, m.head * 0.95
    chest = max(0.75 * r, 0.1)
    front = 0.55 * half
    for k in range(3):
        x = front + (k - 1) * max(0.55 * chest, 0.12)
        _insect_leg(figure, m, x, 0.5 * chest, k)
    if m.kind.wings == "clear":
        _wings(figure, m, front, -0.6 * chest, back=True)
    droop = 0.25 * m.pose.tail
    abdomen = [
        (-1.5 * half, droop * half + 0.1, 0.35 * r),
        (-0.8 * half, 0.6 * droop * half, r),
        (-0.1 * half, 0.0, 0.92 * r),
        (front - 0.5 * chest, 0.0, 0.6 * r),
    ]
    if not m.kind.shell:
        mark_tube(figure, m, figure.tube(abdomen, "main", marked=True))
    figure.ball(front + chest + 0.75 * head, 0.04, head, "trim" if m.kind.depth > 0.2 else "main")
    if m.kind.horns == "feelers":
        for shift in (0.0, 0.45):
            root = polar(front + chest + 0.75 * head, 0.0, -1.0, 0.8 * head)
            tip = polar(*root, -1.0 + shift + 0.5 * m.pose.head, 0.3 * m.pose.extras)
            figure.tube([(*root, 0.02), (*tip, 0.022)], "trim", steps=1)
    figure.ball(front, 0.0, chest, "trim" if m.kind.shell else "main")
    if m.kind.shell:
        _dome(figure, m, front)
    if m.kind.wings == "clear":
        _wings(figure, m, front, -0.6 * chest, back=False)
    draw_eye(figure, front + chest + 1.05 * head, -0.05, 0.3 * head)


def _dome(figure: Figure, m: Measures, front: float) -> None:
    """Wing cases: half a circle over the body."""
    rx, ry, cx = 1.25 * m.half + 0.1, 1.55 * m.radius, -0.3 * m.half
    arc = [(cx + rx * math.cos(a), 0.12 - ry * math.sin(a)) for a in (math.pi * k / 12 for k in range(13))]
    figure.patch(arc, "main", marked=True)
    for u, v, s in ((-0.6, 0.3, 1.0), (-0.25, 0.65, 1.1), (-0.1, 0.2, 1.0), (0.3, 0.6, 1.0), (0.55, 0.22, 0.9)):
        size = 0.26 * s * m.radius
        figure.mark(oval(cx + u * rx + 0.04 * (m.pose.grain[0] - 0.5), 0.12 - v * ry, size, size, 0, 10))


def _insect_leg(figure: Figure, m: Measures, x: float, y: float, k: int) -> None:
    stride, spread = m.pose.stride[k], (k - 1) * 0.35
    for far in (True, False):
        knee = polar(x, y, math.pi / 2 - spread * 1.5 - (0.25 if far else 0) + 0.5 * stride, 0.5 * m.leg)
        foot = (knee[0] + spread * 0.3 + 0.04, y + m.leg)
        wide = m.limb * 1.1 + 0.008
        figure.tube([(x, y, wide), (*knee, wide), (*foot, wide * 0.8)], "trim", far=far, steps=1)


def _wings(figure: Figure, m: Measures, x: float, y: float, *, back: bool) -> None:
    long = (0.62 + 0.5 * max(0.0, m.kind.length - 0.6)) * m.pose.extras
    lift = -math.pi / 2 - 0.55 + 0.5 * m.pose.neck
    for shift in (0.0, -0.5) if m.kind.depth < 0.3 else (-0.15,):
        figure.patch(
            leaf(x, y, lift + shift + (0.55 if back else 0.0), long, 0.32 if m.kind.depth > 0.3 else 0.24),
            "clear",
            far=back,
        )


def _spider(figure: Figure, m: Measures) -> None:
    _fan_of_legs(figure, m, 0.0, 0.0, 0.06)
    abdomen = [(-0.05, -0.1 - 0.9 * m.radius, 0.75 * m.radius), (0.0, -0.12 - 0.2 * m.radius, 0.95 * m.radius)]
    mark_tube(figure, m, figure.tube(abdomen, "main", marked=True))
    figure.ball(0.0, 0.06, 0.95 * m.head, "belly")
    for side in (-1, 1):
        draw_eye(figure, side * 0.06, 0.06, 0.04)


def _crab(figure: Figure, m: Measures) -> None:
    rx, ry = m.half + 0.06, 0.95 * m.radius
    _fan_of_legs(figure, m, 0.0, 0.06, 0.7 * rx)
    for side in (-1, 1):
        reach = 0.42 * m.pose.extras
        elbow = (side * (rx + 0.22), -0.08 + 0.2 * m.pose.stride[6])
        hand = (elbow[0] - side * 0.04, elbow[1] - reach)
        figure.tube([(side * 0.8 * rx, 0.0, 0.05), (*elbow, 0.05), (*hand, 0.06)], "main", steps=1)
        for turn in (-0.45, 0.35):
            figure.patch(leaf(hand[0], hand[1] + 0.08, -math.pi / 2 + turn + 0.4 * m.pose.head, 0.36, 0.2), "main")
    group = figure.group()
    figure.patch(oval(0.0, 0.0, rx, ry, 0.0, 18), "main", group=group)
    figure.patch(oval(0.0, 0.45 * ry, 0.7 * rx, 0.4 * ry), "belly", group=group)
    for side in (-1, 1):
        figure.tube([(side * 0.1, -0.6 * ry, 0.025), (side * 0.12, -ry - 0.1, 0.025)], "main", steps=1)
        draw_eye(figure, side * 0.12, -ry - 0.12, 0.055)


def _fan_of_legs(figure: Figure, m: Measures, x: float, y: float, root: float) -> None:
    """Four bent legs on each side."""
    reach, wide = m.leg * 1.15, m.limb + 0.014
    for side in (-1, 1):
        for k in range(4):
            lift = 0.75 - 0.42 * k + 0.3 * m.pose.stride[k + (4 if side > 0 else 0)]
            knee = (x + side * (root + 0.5 * reach), y - lift * reach * 0.75)
            foot = (x + side * (root + reach * (0.95 - 0.1 * k)), knee[1] + (0.35 + 0.12 * k) * reach)
            start = (x + side * root, y)
            figure.tube([(*start, wide), (*knee, wide), (*foot, wide * 0.7)], "trim", steps=1)
