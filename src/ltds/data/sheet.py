"""Contact sheets: a row for each class, a column for each domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ltds.data.decode import decode
from ltds.data.manifest import Manifest

Picture = Callable[[int, int], NDArray[np.uint8] | None]  # (class, domain) -> (h,w,3), or None for an empty cell
GAP = 4


def draw_sheet(classes: Sequence[str], domains: Sequence[str], picture: Picture, size: int) -> Image.Image:
    """A labelled grid of square pictures of `size` pixels; a cell without an image stays blank."""
    height = max(9, size // 6)
    font = ImageFont.load_default(size=height)
    left = GAP + max(int(font.getlength(name)) for name in classes) + GAP
    top = height + 2 * GAP
    step = size + GAP
    sheet = Image.new("RGB", (left + len(domains) * step, top + len(classes) * step), "white")
    pen = ImageDraw.Draw(sheet)
    for column, name in enumerate(domains):
        pen.text((left + column * step, GAP), name, fill="black", font=font)
    for row, name in enumerate(classes):
        y = top + row * step
        pen.text((GAP, y + size // 2), name, fill="black", font=font, anchor="lm")
        for column in range(len(domains)):
            cell = picture(row, column)
            if cell is not None:
                sheet.paste(_square(cell, size), (left + column * step, y))
    return sheet


def contact_sheet(manifest: Manifest, size: int = 64) -> Image.Image:
    """The first image of every (class, domain) pair: of the test split where it has one, else of any."""
    first: dict[tuple[int, int], int] = {}
    for row in np.argsort(-manifest.split_ids, kind="stable"):  # test before val before train
        first.setdefault((int(manifest.labels[row]), int(manifest.domain_ids[row])), int(row))

    def picture(label: int, domain: int) -> NDArray[np.uint8] | None:
        row = first.get((label, domain))
        return None if row is None else decode(manifest.root / manifest.paths[row], None)

    return draw_sheet(manifest.classes, manifest.domains, picture, size)


def _square(pixels: NDArray[np.uint8], size: int) -> Image.Image:
    image = Image.fromarray(pixels)
    side = min(image.size)
    box = ((image.width - side) // 2, (image.height - side) // 2, (image.width + side) // 2, (image.height + side) // 2)
    # Enlarged pixels stay visible as such; shrunk ones are averaged.
    return image.resize((size, size), Image.Resampling.NEAREST if size > side else Image.Resampling.BOX, box=box)
