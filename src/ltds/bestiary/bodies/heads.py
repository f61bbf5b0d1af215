"""The head of a walker: skull and snout, eye, ears, horns, trunk, tusks and mane."""

from __future__ import annotations

import math

from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Point, leaf, oval, polar
from ltds.bestiary.measures import Measures


def draw_head(figure: Figure, m: Measures, x: float, y: float, angle: float) -> None:
    """Add a head centred at (x, y) that looks along `angle`."""
    r = m.head
    if m.kind.ruff:
        _ruff(figure, m, x, y)
    _ears(figure, m, x, y, angle, far=True)
    _horns(figure, m, x, y, angle)
    tip, end = polar(x, y, angle, r * 0.35 + m.snout), r * (0.66 - 0.22 * m.kind.snout)
    middle = polar(x, y, angle, (r * 0.35 + m.snout) * 0.55)
    group = figure.group()
    figure.tube(
        [(x, y, r), (*middle, (r + end) * 0.47), (*tip, end)],
        "main",
        group=group,
        marked=m.kind.pattern == "stripes",
        steps=2,
    )
    if m.kind.belly != m.kind.main and not m.kind.trunk:
        jaw = polar(*tip, angle + math.pi / 2, end * 0.35)
        figure.tube([(*polar(x, y, angle + 1.0, r * 0.6), r * 0.3), (*jaw, end * 0.6)], "belly", group=group, steps=1)
    figure.ball(*polar(*tip, angle - 0.5, end * 0.75), max(0.022, 0.32 * end), "eye", group=group)
    if m.kind.socks == 1.0:
        figure.patch(oval(*polar(x, y, angle - 0.6, r * 0.4), r * 0.4, r * 0.33, 0.8, 10), "trim", group=group)
    if m.kind.trunk:
        _trunk(figure, m, x, y)
    if m.kind.tusks:
        _tusk(figure, m, *polar(x, y, angle + 0.5, r * 0.35 + 0.75 * m.snout), angle)
    if m.kind.horns == "nose":
        figure.patch(
            leaf(*polar(*tip, angle - 1.3, end * 0.6), angle - 1.25, r * 1.9 * m.pose.extras, r * 0.85), "bone"
        )
        figure.patch(leaf(*polar(*middle, angle - 1.4, r * 0.5), angle - 1.45, r * 0.7, r * 0.5), "bone")
    draw_eye(figure, *polar(x, y, angle - 0.75, r * 0.48), max(0.036, 0.2 * r))
    _ears(figure, m, x, y, angle, far=False)
    if m.kind.shaggy > 0.3:
        figure.patch(
            leaf(*polar(*middle, angle + math.pi / 2, r * 0.4), 1.7 + 0.3 * m.pose.head, r * 1.1, r * 0.6), "fur"
        )


def draw_eye(figure: Figure, x: float, y: float, r: float) -> None:
    """Add an eye: white, with a black pupil that looks ahead."""
    group = figure.group()
    figure.ball(x, y, r * 1.25, "bone", group=group)
    figure.ball(x + 0.3 * r, y, r * 0.85, "eye", group=group)


def _ears(figure: Figure, m: Measures, x: float, y: float, angle: float, *, far: bool) -> None:
    r, shift = m.head, 0.5 if far else 0.0
    role = "trim" if m.kind.socks else "main"
    root = polar(x, y, angle - 1.75 + shift, r * 0.78)
    lean = angle - 1.9 + shift + 0.4 * m.pose.head
    if m.kind.ears == "round":
        figure.patch(oval(*polar(x, y, angle - 1.95 + 1.3 * shift, r * 0.98), r * 0.42, r * 0.42, 0, 10), role, far=far)
    elif m.kind.ears == "pointed":
        figure.patch(leaf(*root, lean, r * 1.15 * m.pose.extras, r * 0.72), role, far=far)
    elif m.kind.ears == "long":
        figure.patch(leaf(*root, lean, r * (1.6 + 1.4 * (1 - m.kind.size)) * m.pose.extras, r * 0.62), role, far=far)
    elif m.kind.ears == "floppy" and m.kind.trunk and not far:
        size = r * (1.0 if m.kind.shaggy < 0.5 else 0.5) * m.pose.extras
        figure.patch(oval(x - 0.75 * r, y - 0.05 * r, size * 0.85, size * 1.15, 0.25 + 0.4 * m.pose.head), "fur")
    elif m.kind.ears == "floppy" and not m.kind.trunk:
        figure.patch(leaf(*root, angle + math.pi - 0.5 + 2.2 * shift, r * 0.95, r * 0.55), "trim", far=far)


def _horns(figure: Figure, m: Measures, x: float, y: float, angle: float) -> None:
    r, root = m.head, polar(x, y, angle - 1.45, m.head * 0.75)
    if m.kind.horns == "short":
        for shift in (0.0, 0.45):
            tip = polar(*root, angle - 1.5 + shift, r * 1.0 * m.pose.extras)
            figure.tube([(*root, r * 0.2), (*tip, r * 0.12)], "trim", steps=1)
    elif m.kind.horns == "curved":
        bend, tip = (
            polar(*root, angle - 1.5, r * 1.1 * m.pose.extras),
            polar(*root, angle - 2.3, r * 1.9 * m.pose.extras),
        )
        figure.tube(
            [(*root, r * 0.3), (*bend, r * 0.22), (*tip, r * 0.06)], "trim" if m.kind.main == "white" else "bone"
        )
    elif m.kind.horns == "antlers":
        for shift in (0.35, -0.25):
            _antler(figure, m, root, angle - 1.75 + shift)


def _antler(figure: Figure, m: Measures, root: Point, angle: float) -> None:
    """A branching antler; a broad palm on a heavy animal."""
    long, group = 0.5 * m.pose.extras, figure.group()
    if m.kind.size > 0.8:
        stem = polar(*root, angle + 0.2, long * 0.3)
        fingers = [polar(*stem, angle - 1.1 + 0.35 * k, long * (0.85 if k % 2 == 0 else 0.5)) for k in range(7)]
        figure.tube([(*root, 0.035), (*stem, 0.04)], "trim", group=group, steps=1)
        figure.patch([stem, *fingers], "trim", group=group)
        return
    stem = polar(*root, angle, long)
    figure.tube([(*root, 0.028), (*stem, 0.022)], "bone", group=group, steps=1)
    for share in (0.35, 0.65, 0.95):
        fork = (root[0] + (stem[0] - root[0]) * share, root[1] + (stem[1] - root[1]) * share)
        figure.tube([(*fork, 0.022), (*polar(*fork, angle + 0.9, long * 0.45), 0.016)], "bone", group=group, steps=1)


def _trunk(figure: Figure, m: Measures, x: float, y: float) -> None:
    r, reach, curl = m.head, m.kind.trunk * 2.6 * m.head * m.pose.extras, m.pose.head
    path = [(x + 0.85 * r, y + 0.1 * r, 0.42 * r), (x + 1.15 * r, y + 0.4 * reach, 0.3 * r)]
    path.append((x + (1.1 + 0.6 * curl) * r, y + 0.75 * reach, 0.24 * r))
    figure.tube([*path, (x + (1.5 + 2.0 * curl) * r, y + (0.98 - 0.3 * abs(curl)) * reach, 0.18 * r)], "main")


def _tusk(figure: Figure, m: Measures, x: float, y: float, angle: float) -> None:
    r, reach = m.head, (0.4 + 1.3 * m.kind.tusks) * m.head * m.pose.extras
    bend, tip = (x + 0.65 * reach, y + 0.35 * reach), (x + 1.05 * reach, y - 0.15 * reach)
    figure.tube([(x, y, 0.17 * r), (*bend, 0.16 * r), (*tip, 0.05 * r)], "bone")


def _ruff(figure: Figure, m: Measures, x: float, y: float) -> None:
    """A ragged ring of hair around the head."""
    outer, teeth = m.head * (1.15 + 0.75 * m.kind.ruff) * m.pose.extras, 13
    ring = [
        polar(x - 0.25 * m.head, y + 0.1 * m.head, math.pi * k / teeth, outer * (1.0 if k % 2 else 0.84))
        for k in range(2 * teeth)
    ]
    figure.patch(ring, "mark" if m.kind.ruff > 0.5 else "main")
