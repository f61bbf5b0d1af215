"""Four-legged bodies, from mouse-like and upright to giraffe and crocodile."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.backs import draw_hump, draw_shell, draw_skirt, draw_spikes
from ltds.bestiary.bodies.heads import draw_head
from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.bodies.tails import draw_tail
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Station, along, polar
from ltds.bestiary.measures import Measures


def draw(figure: Figure, m: Measures) -> None:
    """Add a walker: far legs, tail, body, neck and head, near legs, and what lies on the back."""
    lean = 0.95 * m.kind.upright
    c, s, half, r = math.cos(lean), math.sin(lean), m.half, m.radius
    waist = 0.8 + 0.25 * min(1.0, 1.3 * m.kind.depth)
    spine = [
        (-half, 0.9 * r),
        (-0.35 * half, waist * 0.95 * r),
        (0.35 * half, waist * r),
        (half, (0.95 - 0.3 * m.kind.upright) * r),
    ]
    body = [(u * c, -u * s, w) for u, w in spine]
    ground = body[0][1] + 0.3 * r + m.leg
    _legs(figure, m, body, ground, far=True)
    rump = along(body, 0.0, -0.35)
    draw_tail(figure, m, rump[0] - 0.75 * r, rump[1], math.pi - 0.2)
    group = figure.group()
    marked = not m.kind.shell
    curve = figure.tube(body, "main", group=group, marked=marked)
    if m.kind.hump:
        draw_hump(figure, m, body, group)
    if m.kind.belly != m.kind.main:
        low = [along(body, t, 0.62) for t in (0.12, 0.5, 0.98)]
        figure.tube([(x, y, 0.4 * w) for x, y, w in low], "belly", group=group, steps=2)
    if m.kind.shaggy:
        draw_skirt(figure, m, body)
    neck_tube, (x, y), nod = _neck(m, body)
    if m.kind.crest and m.kind.neck > 0.2:
        mane = [along(neck_tube, t, -0.85) for t in (0.0, 0.5, 1.0)]
        figure.tube([(mx, my, 0.03 + 0.05 * m.kind.crest) for mx, my, _ in mane], "trim")
    neck = figure.tube(neck_tube, "main", group=group, marked=marked, steps=2)
    if marked and m.kind.pattern != "plain":
        mark_tube(figure, m, curve)
        if m.kind.pattern in ("stripes", "spots", "patches") and m.kind.neck > 0.25:
            mark_tube(figure, m, neck, salt=11)
    if m.kind.shell:
        draw_shell(figure, m)
    if m.kind.spikes:
        draw_spikes(figure, m, body)
    draw_head(figure, m, x, y, nod)
    _legs(figure, m, body, ground, far=False)


def _neck(m: Measures, body: list[Station]) -> tuple[list[Station], tuple[float, float], float]:
    """The neck's stations, the middle of the head and the angle of its gaze."""
    rise = -(0.05 + 1.2 * m.kind.carriage) + m.pose.neck * (0.45 if m.kind.neck < 0.3 else 0.7)
    x, y, w = along(body, 0.95, -0.3)
    reach = m.neck + 0.45 * w + 0.55 * m.head
    hx, hy = polar(x, y, rise, reach)
    bend = polar(x, y, rise - 0.12, reach * 0.5)
    narrow = 0.68 * m.head
    wide = max(narrow, 0.72 * w)
    middle = narrow + (wide - narrow) * (0.5 if m.kind.neck < 0.4 else 0.2)
    return [(x, y, wide), (*bend, middle), (hx, hy, narrow)], (hx, hy), 0.28 + m.pose.head * 0.8


def _legs(figure: Figure, m: Measures, body: list[Station], ground: float, *, far: bool) -> None:
    for front in (False, True):
        x, y, w = along(body, 0.9 if front else 0.08, 0.3)
        x += (0.07 if far else -0.02) * (1 if front else 1.4)
        stride = m.pose.stride[(0 if front else 2) + (1 if far else 0)]
        if front and m.kind.upright > 0.4:
            arm = 0.55 * (ground - body[0][1])
            elbow, hand = polar(x, y, 1.1 + stride, arm * 0.5), polar(x, y, 0.75 + stride, arm)
            figure.tube([(x, y, 0.9 * m.limb), (*elbow, 0.7 * m.limb), (*hand, 0.6 * m.limb)], "main", far=far, steps=1)
            continue
        _leg(figure, m, x, y, w, ground - (0.03 if far else 0.0), stride, front=front, far=far)


def _leg(
    figure: Figure, m: Measures, x: float, y: float, w: float, ground: float, stride: float, *, front: bool, far: bool
) -> None:
    drop = max(ground - y, 0.08)
    bend = (0.05 if front else -0.1) * drop
    foot = x + stride * 0.55 * drop
    thigh = min(1.6 * m.limb + (0.0 if front else 0.12 * w), 0.6 * w)
    knee = ((x + foot) / 2 - bend, y + 0.52 * drop)
    group, base = figure.group(), "trim" if m.kind.socks == 1.0 else "main"
    stations = [(x, y, max(thigh, m.limb)), (*knee, m.limb), (foot, ground - 0.7 * m.limb, 0.85 * m.limb)]
    leg = figure.tube(stations, base, group=group, far=far, marked=m.kind.pattern == "stripes", steps=2)
    figure.tube(
        [(foot, ground - 0.7 * m.limb, 0.85 * m.limb), (foot + 0.7 * m.limb, ground - 0.5 * m.limb, 0.7 * m.limb)],
        base,
        group=group,
        far=far,
        steps=1,
    )
    if 0 < m.kind.socks < 1:
        top = 1 - m.kind.socks
        start = (x + (foot - x) * max(top, 0.5), y + drop * max(top, 0.5), m.limb)
        figure.tube([start, stations[2]], "trim", group=group, far=far, steps=1)
    if m.kind.pattern == "stripes" and not far:
        mark_tube(figure, m, leg, salt=23 + front)
