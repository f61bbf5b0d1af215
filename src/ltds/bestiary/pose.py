"""How strongly pictures of one kind differ, and the random pose of one creature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from ltds.core.config import Settings


class Variety(Settings):
    """How strongly pictures of one kind differ: 0 is not at all, 1 is hard to recognise."""

    pose: float = Field(default=0.65, ge=0.0, le=1.5, description="swing of legs, neck, head, tail; tilt")
    build: float = Field(default=0.55, ge=0.0, le=1.5, description="proportions of the body")
    scale: float = Field(default=0.55, ge=0.0, le=1.5, description="how much of the frame the creature fills")
    place: float = Field(default=0.55, ge=0.0, le=1.5, description="where in the frame it stands")
    light: float = Field(default=0.55, ge=0.0, le=1.5, description="direction and strength of the light")
    colour: float = Field(default=0.55, ge=0.0, le=1.5, description="change of its colours")
    occlusion: float = Field(default=0.55, ge=0.0, le=1.5, description="grass, rocks, branches in front")
    clutter: float = Field(default=0.55, ge=0.0, le=1.5, description="shapes behind it")


@dataclass(frozen=True)
class Pose:
    """A random pose of one creature. Angles in radians, the others factors near 1."""

    stride: tuple[float, ...]
    neck: float
    head: float
    tail: float
    tilt: float
    length: float
    depth: float
    leg: float
    limb: float
    neck_length: float
    head_size: float
    extras: float
    grain: tuple[float, ...]


def draw_pose(rng: np.random.Generator, variety: Variety) -> Pose:
    """A pose whose spread follows `variety.pose` and `variety.build`."""
    swing = [float(v) * variety.pose for v in rng.random(12) * 2 - 1]
    build = [math.exp(0.45 * variety.build * float(v)) for v in rng.random(7) * 2 - 1]
    return Pose(
        stride=tuple(0.75 * v for v in swing[:8]),
        neck=0.5 * swing[8],
        head=0.5 * swing[9],
        tail=0.9 * swing[10],
        tilt=0.22 * swing[11],
        length=build[0],
        depth=build[1],
        leg=build[2],
        limb=build[3],
        neck_length=build[4],
        head_size=build[5],
        extras=build[6],
        grain=tuple(float(v) for v in rng.random(64)),
    )
