"""A scene: one creature among its surroundings, as maps of numbers that a style turns into a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ltds.bestiary.anatomy import figure
from ltds.bestiary.figure import Figure
from ltds.bestiary.kinds import PALETTE, Kind
from ltds.bestiary.pose import Pose, Variety, draw_pose
from ltds.bestiary.surroundings import CREATURE, FRONT, SHADOW, draw_behind, draw_front


@dataclass(frozen=True)
class Scene:
    """Maps of a square canvas, `over` times as wide as the picture.

    parts (S, S) which shape is seen; lit (S, S) 255 in the light, 0 in the shade; marked (S, S) where the pattern is;
    colours (256, 3), groups (256,), far (256,) belong to the parts; contrast is the strength of light and shade.
    """

    size: int
    over: int
    parts: NDArray[np.uint8]
    lit: NDArray[np.uint8]
    marked: NDArray[np.bool_]
    colours: NDArray[np.int32]
    mark: NDArray[np.int32]
    groups: NDArray[np.uint8]
    far: NDArray[np.bool_]
    contrast: float

    @property
    def side(self) -> int:
        return self.size * self.over


def oversampling(size: int) -> int:
    """How many canvas pixels make the side of one pixel."""
    return 4 if size <= 64 else 3 if size <= 112 else 2


def compose(kind: Kind, rng: np.random.Generator, *, size: int, variety: Variety) -> Scene:
    """Draw a scene of this kind; everything random in it comes from `rng`, in a fixed order."""
    over = oversampling(size)
    side = size * over
    pose = draw_pose(rng, variety)
    drawn = figure(kind, pose)
    parts, lit, marks = (Image.new("L", (side, side)) for _ in range(3))
    colours = np.zeros((256, 3), np.int32)
    groups, far, wears = np.zeros(256, np.uint8), np.zeros(256, np.bool_), np.zeros(256, np.bool_)
    lit.paste(255, (0, 0, side, side))
    light = _light(rng, variety)
    horizon = draw_behind(parts, colours, rng, variety)
    rims = np.array([rim for shape in drawn.shapes for rim in shape.rim])
    frame = _Frame.fit(rims, kind, pose, rng, variety, side)
    frame.shadow(parts, horizon)
    _draw_creature(drawn, rims, frame, parts, lit, marks, light)
    roles = _role_colours(kind, rng, variety)
    for number, shape in enumerate(drawn.shapes, CREATURE):
        colours[number] = roles[shape.role]
        groups[number], far[number], wears[number] = shape.group + 1, shape.far, shape.marked
    draw_front(parts, lit, colours, groups, rng, variety)
    numbers = np.asarray(parts)
    return Scene(
        size=size,
        over=over,
        parts=numbers,
        lit=np.asarray(lit),
        marked=(np.asarray(marks) > 0) & wears[numbers],
        colours=colours,
        mark=roles["mark"],
        groups=groups,
        far=far,
        contrast=1.0 + 0.5 * variety.light * (2 * float(rng.random()) - 1),
    )


def _light(rng: np.random.Generator, variety: Variety) -> tuple[float, float]:
    """Where the light comes from: above, turned to a side by `variety.light`."""
    angle = -math.pi / 2 + 0.4 + 1.5 * variety.light * (2 * float(rng.random()) - 1)
    return math.cos(angle), math.sin(angle)


def _role_colours(kind: Kind, rng: np.random.Generator, variety: Variety) -> dict[str, NDArray[np.int32]]:
    """The colour of each role: the kind's own, all moved a little together and a little apart."""
    shift = (rng.random((5, 3)) * 2 - 1) * 40 * variety.colour
    gain = 1.0 + 0.35 * variety.colour * (2 * float(rng.random()) - 1)
    moved = {}
    for name, move in zip(("main", "belly", "mark", "trim"), shift, strict=False):
        base = np.array(PALETTE[getattr(kind, name)], np.float64)
        moved[name] = _bytes((base + 0.5 * move + 0.5 * shift[4]) * gain)
    moved["fur"] = moved["main"] * 4 // 5
    moved["bone"] = np.array((246, 242, 226), np.int32)
    moved["eye"] = np.array((24, 22, 26), np.int32)
    moved["clear"] = np.array((206, 228, 236), np.int32)
    return moved


def _bytes(colour: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.clip(np.rint(colour), 0, 255).astype(np.int32)


@dataclass(frozen=True)
class _Frame:
    """Where a creature stands on the canvas: scale, turn, mirror, middle."""

    matrix: NDArray[np.float64]
    middle: NDArray[np.float64]
    target: NDArray[np.float64]
    foot: float
    width: float

    @classmethod
    def fit(
        cls, rims: NDArray[np.float64], kind: Kind, pose: Pose, rng: np.random.Generator, variety: Variety, side: int
    ) -> _Frame:
        c, s = math.cos(pose.tilt), math.sin(pose.tilt)
        turn = np.array(((c, -s), (s, c)))
        turned = rims[:, :2] @ turn.T
        low, high = turned.min(axis=0), turned.max(axis=0)
        span = high - low
        draws = rng.random(4)
        fill = (0.9 + 0.06 * kind.size) * (1 - 0.45 * variety.scale * float(draws[0]))
        # A long thin body may stick out a little: it would be too small to see otherwise.
        scale = side * fill / (0.92 * max(span) + 0.08 * min(span))
        slack = 0.5 * np.abs(side - span * scale) + 0.06 * side
        target = side / 2 + np.array((2 * draws[1] - 1, 2 * draws[2] - 1)) * slack * variety.place
        flip = np.diag((-1.0 if draws[3] < 0.5 else 1.0, 1.0))
        foot = float(target[1] + span[1] * scale / 2)
        return cls(scale * flip @ turn, turn.T @ (low + high) / 2, target, foot, float(span[0] * scale))

    def apply(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) points of the creature's frame on the canvas."""
        return (points - self.middle) @ self.matrix.T + self.target

    def shadow(self, parts: Image.Image, horizon: int) -> None:
        """Draw the shadow on the ground, where there is ground under the feet."""
        if self.foot > horizon:
            x, flat = float(self.target[0]), 0.03 * parts.width
            box = (x - 0.42 * self.width, self.foot - flat, x + 0.42 * self.width, self.foot + flat)
            ImageDraw.Draw(parts).ellipse(tuple(round(v) for v in box), fill=SHADOW)


def _draw_creature(
    drawn: Figure,
    rims: NDArray[np.float64],
    frame: _Frame,
    parts: Image.Image,
    lit: Image.Image,
    marks: Image.Image,
    light: tuple[float, float],
) -> None:
    """Draw every shape's number, its lit side (a smaller outline moved to the light), and the marks."""
    assert len(drawn.shapes) <= FRONT - CREATURE
    edge, spine = frame.apply(rims[:, :2]), frame.apply(rims[:, 2:])
    out = edge - spine
    reach = np.sqrt((out * out).sum(axis=1, keepdims=True))
    bright = spine + 0.8 * out + 0.34 * reach * np.array(light)
    edges, brights = (np.rint(points).astype(np.int64).ravel().tolist() for points in (edge, bright))
    draw_part, draw_lit, draw_mark = (ImageDraw.Draw(image) for image in (parts, lit, marks))
    start = 0
    for number, shape in enumerate(drawn.shapes, CREATURE):
        end = start + 2 * len(shape.rim)
        draw_part.polygon(edges[start:end], fill=number)
        draw_lit.polygon(edges[start:end], fill=0)
        draw_lit.polygon(brights[start:end], fill=255)
        start = end
    if drawn.marks:
        spots = (
            np.rint(frame.apply(np.array([p for mark in drawn.marks for p in mark]))).astype(np.int64).ravel().tolist()
        )
        start = 0
        for mark in drawn.marks:
            draw_mark.polygon(spots[start : start + 2 * len(mark)], fill=255)
            start += 2 * len(mark)
