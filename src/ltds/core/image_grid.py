"""A labelled grid of pictures, for contact sheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from ltds.core.files import has_mark

PictureAt = Callable[[int, int], NDArray[np.uint8] | None]  # (row, column) -> (h,w,3), or None for an empty cell
GAP = 4


def software_tag(name: str) -> PngInfo:
    """A text for a PNG file: which command wrote it."""
    tag = PngInfo()
    tag.add_text("Software", name)
    return tag


def has_software_tag(name: str) -> Callable[[Path], bool]:
    """What tells whether a PNG file has this tag."""
    return has_mark(f"Software\0{name}")  # as PNG stores it


def draw_grid(rows: Sequence[str], columns: Sequence[str], picture_at: PictureAt, size: int) -> Image.Image:
    """A grid of square pictures of `size` pixels, its rows and columns labelled; a cell without a picture is blank."""
    height = max(9, size // 6)
    font = ImageFont.load_default(size=height)
    left = GAP + max(int(font.getlength(name)) for name in rows) + GAP
    top = height + 2 * GAP
    step = size + GAP
    grid = Image.new("RGB", (left + len(columns) * step, top + len(rows) * step), "white")
    pen = ImageDraw.Draw(grid)
    for column, name in enumerate(columns):
        pen.text((left + column * step, GAP), name, fill="black", font=font)
    for row, name in enumerate(rows):
        y = top + row * step
        pen.text((GAP, y + size // 2), name, fill="black", font=font, anchor="lm")
        for column in range(len(columns)):
            picture = picture_at(row, column)
            if picture is not None:
                grid.paste(_square(picture, size), (left + column * step, y))
    return grid


def _square(pixels: NDArray[np.uint8], size: int) -> Image.Image:
    image = Image.fromarray(pixels)
    side = min(image.size)
    box = ((image.width - side) // 2, (image.height - side) // 2, (image.width + side) // 2, (image.height + side) // 2)
    # Enlarged pixels stay visible as such; shrunk ones are averaged.
    return image.resize((size, size), Image.Resampling.NEAREST if size > side else Image.Resampling.BOX, box=box)
