"""What a walker carries on its back or under its belly: hump, ragged fur, shell, spines."""

from __future__ import annotations

import math

from ltds.bestiary.bodies.patterns import mark_tube
from ltds.bestiary.figure import Figure
from ltds.bestiary.geometry import Station, along, leaf, oval
from ltds.bestiary.measures import Measures


def draw_hump(figure: Figure, m: Measures, body: list[Station], group: int) -> None:
    """A tall hump amid the back, or a shoulder that rises over it."""
    tall = m.kind.hump > 0.9
    x, y, w = along(body, 0.48 if tall else 0.82, -0.55)
    if tall:
        figure.patch(leaf(x, y + 0.1, -math.pi / 2, (0.5 * w + 0.3) * m.pose.extras, 0.62), "main", group=group)
    else:
        rise = (0.25 + 0.75 * m.kind.hump) * w * m.pose.extras
        figure.patch(oval(x - 0.03, y, 1.15 * w, rise, -0.15), "main", group=group)


def draw_skirt(figure: Figure, m: Measures, body: list[Station]) -> None:
    """Ragged fur that hangs from the belly."""
    teeth, depth = 9, 0.9 + 0.75 * m.kind.shaggy
    edge = [along(body, k / teeth, depth if k % 2 else depth - 0.3)[:2] for k in range(teeth + 1)]
    figure.patch([along(body, 0.0, 0.4)[:2], *edge, along(body, 1.0, 0.4)[:2]], "fur")


def draw_shell(figure: Figure, m: Measures) -> None:
    """A dome over the whole body."""
    rx, ry = m.half + 0.75 * m.radius, 2.0 * m.radius
    dome = [(rx * math.cos(a), 0.45 * m.radius - ry * math.sin(a)) for a in (math.pi * k / 12 for k in range(13))]
    figure.patch(dome, "trim", marked=True)
    bottom = 0.45 * m.radius
    figure.tube([(-rx, bottom, 0.06), (rx, bottom, 0.06)], "belly", steps=1)
    stations = [
        (-0.8 * rx, 0.1 * m.radius, 0.5 * ry),
        (0.0, -0.4 * m.radius, 0.75 * ry),
        (0.8 * rx, 0.1 * m.radius, 0.5 * ry),
    ]
    mark_tube(figure, m, stations)


def draw_spikes(figure: Figure, m: Measures, body: list[Station]) -> None:
    """Spines from the rump over the back, leaning backwards."""
    if m.kind.spikes > 0.4:
        _coat(figure, m, body)
        return
    rise, teeth = 1.0 + 1.2 * m.kind.spikes * m.pose.extras, 10
    edge = [along(body, (k - k % 2) / (2 * teeth), -(rise if k % 2 else 0.9))[:2] for k in range(2 * teeth + 1)]
    figure.patch([*edge, *(along(body, t, -0.75)[:2] for t in (1.0, 0.5, 0.0))], "mark")


def _coat(figure: Figure, m: Measures, body: list[Station]) -> None:
    """Spines that stand out all around the back like the rays of a wheel."""
    (x, y, w), span = along(body, 0.5), 0.5 * (body[-1][0] - body[0][0])
    long, rays = m.kind.spikes * m.pose.extras, 9 if m.kind.spikes > 0.7 else 13
    edge = []
    for k in range(2 * rays + 1):
        turn = math.pi * (1.03 + 0.86 * k / (2 * rays)) - (0.1 if k % 2 else 0.0)
        out = 0.75 + (0.85 * long * (1 - 0.35 * k / (2 * rays)) if k % 2 else 0.1 * long)
        edge.append((x + math.cos(turn) * (span + w) * out, y + math.sin(turn) * (1.15 * w + 0.25 * long) * out))
    figure.patch([*edge, (x + span, y + 0.1 * w), (x - span, y + 0.25 * w)], "mark")
