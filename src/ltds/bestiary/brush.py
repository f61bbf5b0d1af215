"""Brush strokes that cover a canvas: made once for each size, then turned, mirrored and coloured for every picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ltds.core.rng import numpy_generator


@dataclass(frozen=True)
class Strokes:
    """which (S, S) the stroke at each pixel; relief (S, S) light to add there; rows, columns of their middles."""

    which: NDArray[np.int32]
    relief: NDArray[np.int32]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def turned(self, turn: int) -> Strokes:
        """The same cover a quarter turned `turn % 4` times and, from 4 on, mirrored."""
        last = len(self.which) - 1
        which, relief, rows, columns = self.which, self.relief, self.rows, self.columns
        for _ in range(turn % 4):
            which, relief, rows, columns = np.rot90(which), np.rot90(relief), last - columns, rows
        if turn >= 4:
            which, relief, columns = which[:, ::-1], relief[:, ::-1], last - columns
        return Strokes(which, relief, rows, columns)


@lru_cache(maxsize=32)
def brush_strokes(side: int, index: int, broad: bool) -> Strokes:
    """A cover of strokes along a slowly turning direction. Depends on its arguments alone."""
    rng = numpy_generator(0, "bestiary/strokes", side, index, int(broad))
    gap = side / (16 if broad else 40)
    count = math.ceil(side / gap) + 2
    lattice = np.stack(np.meshgrid(np.arange(count), np.arange(count)), -1).reshape(-1, 2) - 0.5
    middles = (lattice + rng.random(lattice.shape) - 0.5) * gap
    waves = rng.random(4)
    order = rng.permutation(len(middles))
    which, relief = Image.new("I", (side, side)), Image.new("L", (side, side), 128)
    pens = ImageDraw.Draw(which), ImageDraw.Draw(relief)
    # The lattice leaves gaps between strokes: a first, larger coat of each closes them.
    for coat, number in ((1.9, n) for n in order):
        _stroke(pens, middles[number], number, gap * coat / 1.5, waves, side)
    for number in order[::-1]:
        _stroke(pens, middles[number], number, gap, waves, side)
    pixels = np.clip(np.rint(middles), 0, side - 1).astype(np.int64)
    return Strokes(
        np.asarray(which).astype(np.int32), np.asarray(relief).astype(np.int32) - 128, pixels[:, 1], pixels[:, 0]
    )


def _stroke(
    pens: tuple[ImageDraw.ImageDraw, ImageDraw.ImageDraw],
    middle: NDArray[np.float64],
    number: int,
    gap: float,
    waves: NDArray[np.float64],
    side: int,
) -> None:
    """A slanted bar with a bright and a dark ridge."""
    x, y = (float(v) for v in middle)
    turn = 2 * math.pi * float(waves[0]) + 1.6 * math.sin(
        6 * x / side * float(waves[1]) + 9 * y / side * float(waves[2])
    )
    u, v = math.cos(turn), math.sin(turn)
    long, wide = 1.25 * gap, 0.55 * gap
    corners = [
        (x + a * u * long - b * v * wide, y + a * v * long + b * u * wide)
        for a, b in ((-1, -0.6), (-0.8, 1), (0.8, 1), (1, 0.5), (0.9, -1), (-0.8, -1))
    ]
    ints = [round(p) for corner in corners for p in corner]
    pens[0].polygon(ints, fill=int(number))
    pens[1].polygon(ints, fill=128)
    thick = max(1, round(gap * 0.18))
    for shift, value in ((-0.75, 168), (0.0, 140), (0.75, 84)):
        ends = [(x + a * u * long - shift * v * wide, y + a * v * long + shift * u * wide) for a in (-0.85, 0.85)]
        pens[1].line([round(p) for end in ends for p in end], fill=value, width=thick)
