"""Small copies of the test images that figures show, stored in the run so that a report never needs the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_arrays
from ltds.core.errors import DataError
from ltds.core.files import atomic
from ltds.data.decode import decoded

SIDE = 96
Thumbnails = Mapping[int, NDArray[np.uint8]]  # row id of the manifest -> (h,w,3)


def thumbnail(file: Path) -> NDArray[np.uint8] | None:
    """(h,w,3), the image as a network sees it, at most SIDE pixels on each side; None if the file cannot be read."""
    try:
        image = decoded(file, SIDE)
    except DataError:
        return None
    image.thumbnail((SIDE, SIDE))
    return np.asarray(image, dtype=np.uint8)


def make_thumbnails(files: Iterable[tuple[int, Path]]) -> Thumbnails:
    """Thumbnails from (row id, image file); files that cannot be read are left out."""
    return {row: image for row, file in files if (image := thumbnail(file)) is not None}


def save_thumbnails(file: Path, images: Thumbnails) -> None:
    """Write the thumbnails to an npz file, one uint8 array per row id."""
    columns: dict[str, Any] = {str(row): image for row, image in images.items()}
    with atomic(file) as stream:
        np.savez_compressed(stream, **columns)


def load_thumbnails(file: Path) -> Thumbnails:
    """The thumbnails in this file; none if it is missing or damaged, because only figures need them."""
    try:
        images = {int(name): array for name, array in read_arrays(file).items()}
    except (OSError, ValueError):
        return {}
    return {row: image for row, image in images.items() if image.dtype == np.uint8 and image.shape[2:] == (3,)}
