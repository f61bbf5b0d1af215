"""What the styles share: flat colours, blur, tones, lines, grain. Integers wherever rounding could differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from ltds.bestiary.scene import Scene

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]


def flat_colours(scene: Scene, colours: Ints, mark: Ints) -> Ints:
    """(S, S, 3) the colour of every part, and of the marks on it."""
    flat = colours[scene.parts]
    flat[scene.marked] = mark
    return flat


def soften(mask: NDArray[np.uint8], radius: int) -> NDArray[np.uint8]:
    """The mask blurred by a square of this radius."""
    return np.asarray(Image.fromarray(mask).filter(ImageFilter.BoxBlur(radius)))


def shrink(colour: NDArray[Any], over: int) -> NDArray[np.uint8]:
    """(s, s, ...) the canvas averaged down to the picture's size, which smooths every edge."""
    return np.asarray(Image.fromarray(to_bytes(colour)).reduce(over))


def to_bytes(picture: NDArray[Any]) -> NDArray[np.uint8]:
    """The picture in whole numbers 0..255."""
    clipped: NDArray[np.uint8] = np.clip(picture, 0, 255).astype(np.uint8)
    return clipped


def vivid(colours: Ints, percent: int) -> Ints:
    """Colours moved away from grey."""
    grey = colours.sum(axis=-1, keepdims=True) // 3
    moved: Ints = np.clip(grey + (colours - grey) * percent // 100, 0, 255)
    return moved


def nearest_ink(colours: Ints, inks: Ints) -> Ints:
    """(n,) which of the inks (k, 3) comes nearest to each of the colours (n, 3)."""
    apart = colours[:, None] - inks[None]
    nearest: Ints = (apart * apart).sum(axis=-1).argmin(axis=1).astype(np.int32)
    return nearest


def contrasting(under: Ints, ink: int, inks: Ints) -> Ints:
    """The ink for a mark: `ink` or, where that is too similar to the ink under it, the first or last of `inks`."""
    bright = inks.sum(axis=1)
    swap = np.where(bright[under] > bright.mean(), len(inks) - 1, 0)
    return np.where(np.abs(bright[under] - bright[ink]) > 140, ink, swap)


def outlines(scene: Scene, width: int) -> NDArray[np.bool_]:
    """(S, S) where one group of parts meets another; the background has no lines of its own."""
    group = scene.groups[scene.parts]
    lines = np.zeros(group.shape, np.bool_)
    lines[:, width:] |= group[:, width:] != group[:, :-width]
    lines[width:] |= group[width:] != group[:-width]
    return lines


def rays(side: int, x: float, y: float) -> NDArray[np.bool_]:
    """(S, S) every second sector of a wheel around a point, without trigonometry: sectors of a square."""
    v, u = np.mgrid[:side, :side] - np.array((round(y * side), round(x * side)))[:, None, None]
    wide, tall = np.abs(u) + 1, np.abs(v) + 1
    sector = np.where(wide > tall, 8 * tall // wide, 16 - 8 * wide // tall)
    every_second: NDArray[np.bool_] = (sector + (u < 0) + (v < 0)) % 2 == 0
    return every_second


def noise(rng: np.random.Generator, size: int, amplitude: int) -> Floats:
    """(size, size) even noise around 0, this wide."""
    return ((rng.random((size, size)) - 0.5) * amplitude).astype(np.float32)


def grid(rng: np.random.Generator, size: int, rows: int, columns: int) -> Floats:
    """(size, size) smooth noise in 0..1 from a grid of draws."""
    coarse = Image.fromarray(rng.integers(0, 256, (rows, columns)).astype(np.uint8))
    fine = np.asarray(coarse.resize((size, size), Image.Resampling.BILINEAR))
    shares: Floats = np.divide(fine, 255, dtype=np.float32)
    return shares


def chalk_grain(rng: np.random.Generator, size: int) -> Floats:
    """(size, size) how much paper shows: the tooth everywhere, more where the chalk was pressed less."""
    fine = min(size, 72)
    tooth = grid(rng, size, fine, fine)
    press = grid(rng, size, 9, 5)
    bare: Floats = np.clip((tooth - 0.88 + 0.42 * press) * 1.5, 0, 0.7)
    return bare


def wood_grain(rng: np.random.Generator, size: int) -> Floats:
    """(size, size) how much ink is missing: long streaks along the board, and specks."""
    streaks = grid(rng, size, min(size, 64), 4)
    specks = grid(rng, size, min(size, 64), min(size, 64))
    missing: Floats = np.clip((streaks - 0.6) * 0.9, 0, 0.4) + np.clip((specks - 0.85) * 2, 0, 0.25)
    return missing
