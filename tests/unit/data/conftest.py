"""Small datasets of real image files, made anew for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

CLASSES = ("ant", "bee", "cat")
DOMAINS = ("photo", "sketch", "paint")


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[..., Manifest]:
    """`dataset(per_pair=4, size=(20, 26))`: images of every (domain, class) in train, one each in val and test.

    Each image is a smooth ramp that depends on its row, so that no two are alike.
    """

    def make(per_pair: int = 4, size: tuple[int, int] = (20, 26), ending: str = "png", name: str = "tiny") -> Manifest:
        root = tmp_path / name
        rows = [
            (f"{domain}/{label}/{split}-{i}.{ending}", c, d, SPLITS.index(split))
            for d, domain in enumerate(DOMAINS)
            for c, label in enumerate(CLASSES)
            for split in SPLITS
            for i in range(per_pair if split == "train" else 1)
        ]
        for row, (path, *_) in enumerate(rows):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(ramp(size[0] + row % 5, size[1], row)).save(root / path)
        paths, labels, domains, splits = zip(*rows, strict=True)
        columns = (np.array(column, dtype=np.int64) for column in (labels, domains, splits))
        return Manifest(root, name, CLASSES, DOMAINS, paths, *columns)

    return make


def ramp(height: int, width: int, seed: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    colours = np.random.default_rng(seed).uniform(-3, 3, size=(3, 2))
    planes = [127 + a * (y - height / 2) + b * (x - width / 2) for a, b in colours]
    return np.stack(planes, axis=2).clip(0, 255).astype(np.uint8)
