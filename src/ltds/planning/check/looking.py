"""One look at each image: can it be read, how large is it, is it grey, and a small copy to compare it with others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ltds.core.errors import DataError
from ltds.core.processor import cores
from ltds.core.progress import SILENT, Progress
from ltds.data.decode import DAMAGE, decoded, narrow_grey, open_image
from ltds.data.prefetch import prefetch

SIDE = 110  # shorter side of the decoded image: enough for features at 96 pixels
SMALL = 16  # side of the copy that is compared
TINY = 32
EXTREME = 4.0  # longer side over shorter side
GREY = 2  # largest difference between colour channels of a grey image


@dataclass(frozen=True)
class LookedAt:
    """An image that could be read: its size, whether it is grey, its difference hash, a small copy, and features.

    `narrow`: see `narrow_grey`.
    """

    width: int
    height: int
    grey: bool
    hash: int
    small: NDArray[np.uint8]  # (16,16,3)
    features: NDArray[np.float32]
    narrow: int | None = None


@dataclass(frozen=True)
class ImageLooks:
    """What was seen, by row; a row that could not be read is in `unreadable` with the reason instead."""

    images: dict[int, LookedAt]
    unreadable: dict[int, str]


def look_at(paths: Sequence[Path], rows: Sequence[int], progress: Progress = SILENT) -> ImageLooks:
    """Decode each image once, in several threads. `rows`: the numbers that the results are known by."""

    def look(path: Path) -> LookedAt | str:
        try:
            return _look(path)
        except DataError as error:
            return error.reason

    images: dict[int, LookedAt] = {}
    unreadable: dict[int, str] = {}
    threads = min(4, cores())
    results = prefetch(look, paths, threads=threads, window=4 * threads)
    with closing(results), progress.track("Looking at images", len(paths)) as advance:
        for row, seen in zip(rows, results, strict=True):
            if isinstance(seen, str):
                unreadable[row] = seen
            else:
                images[row] = seen
            advance()
    return ImageLooks(images, unreadable)


def _look(path: Path) -> LookedAt:
    image = decoded(path, SIDE)
    width, height = _size(path, image)
    small = np.asarray(image.resize((SMALL, SMALL), Image.Resampling.BOX))
    spread = np.asarray(image).astype(np.int16)
    grey = bool((spread.max(axis=2) - spread.min(axis=2)).max() <= GREY)
    return LookedAt(width, height, grey, difference_hash(image), small, simple_features(image), narrow_grey(image))


def _size(path: Path, image: Image.Image) -> tuple[int, int]:
    """The size of the file's image; that of the decoded one, which may be smaller, where it cannot be told."""
    try:
        with open_image(path) as original:
            return original.size
    except DAMAGE:
        return image.size


def difference_hash(image: Image.Image) -> int:
    """64 bits: whether each cell of an 8 x 9 grid is brighter than its left neighbour."""
    grid = np.asarray(image.convert("L").resize((9, 8), Image.Resampling.BOX)).astype(np.int16)
    bits = (grid[:, 1:] > grid[:, :-1]).ravel()
    return int(np.packbits(bits).view(">u8")[0])


def simple_features(image: Image.Image) -> NDArray[np.float32]:
    """192 numbers without a network: a histogram of colours, and of edge directions in a grid of 4 x 4 cells."""
    pixels = np.asarray(image.resize((64, 64), Image.Resampling.BOX)).astype(np.int64)
    colours = (pixels // 64) @ np.array([16, 4, 1])
    histogram = np.bincount(colours.ravel(), minlength=64) / colours.size
    grey = pixels.mean(axis=2)
    dy, dx = np.gradient(grey)
    strength = np.hypot(dx, dy)
    direction = np.minimum(7, ((np.arctan2(dy, dx) + np.pi) / (2 * np.pi) * 8).astype(np.int64))
    cell = (np.arange(64) // 16)[:, None] * 4 + (np.arange(64) // 16)[None, :]
    edges = np.bincount((cell * 8 + direction).ravel(), weights=strength.ravel(), minlength=128)
    return np.concatenate([np.sqrt(histogram), edges / (np.linalg.norm(edges) + 1e-6)]).astype(np.float32)
