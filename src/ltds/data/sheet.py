"""Contact sheets: a row for each class, a column for each domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ltds.core.image_grid import draw_grid
from ltds.data.decode import decode
from ltds.data.manifest import Manifest


def dataset_sheet(manifest: Manifest, size: int = 64) -> Image.Image:
    """The first image of every (class, domain) pair: of the test split where it has one, else of any."""
    first: dict[tuple[int, int], int] = {}
    for row in np.argsort(-manifest.split_ids, kind="stable"):  # test before val before train
        first.setdefault((int(manifest.labels[row]), int(manifest.domain_ids[row])), int(row))

    def picture_at(label: int, domain: int) -> NDArray[np.uint8] | None:
        row = first.get((label, domain))
        return None if row is None else decode(manifest.root / manifest.paths[row], None)

    return draw_grid(manifest.classes, manifest.domains, picture_at, size)
