"""One picture, a pure function of its address, and the files of many. Processes that only draw import only this."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ltds.core.errors import DataError, expected
from ltds.core.rng import numpy_generator
from ltds.data.builders.bestiary.kinds import KINDS, NAMES
from ltds.data.builders.bestiary.pose import Variety
from ltds.data.builders.bestiary.scene import compose
from ltds.data.builders.bestiary.styles import STYLES

DOMAINS: tuple[str, ...] = tuple(STYLES)
RENDERER = 1
"""Raised whenever a picture changes, so that old folders are not taken for new ones."""

SMALLEST, LARGEST = 16, 224


class Address(NamedTuple):
    """Which picture: the split's name, the numbers of domain and kind, and the how-manieth."""

    split: str
    domain: int
    kind: int
    instance: int

    @property
    def path(self) -> str:
        """Its file, relative to the dataset's folder."""
        return f"images/{self.split}/{DOMAINS[self.domain]}/{NAMES[self.kind]}/{self.instance:04d}.png"


def render(
    kind: int,
    domain: int,
    *,
    size: int = 32,
    seed: int = 0,
    split: str = "test",
    instance: int = 0,
    variety: Variety = Variety(),  # noqa: B008 (frozen)
) -> NDArray[np.uint8]:
    """(size, size, 3) the picture at this address; what else is rendered changes nothing."""
    if not SMALLEST <= size <= LARGEST:
        raise DataError(
            expected("the size", f"{SMALLEST}..{LARGEST}", size, "Draw larger and scale down, or the reverse.")
        )
    rng = numpy_generator(seed, f"bestiary/{split}", kind, domain, instance)
    scene = compose(KINDS[kind], rng, size=size, variety=variety)
    return STYLES[DOMAINS[domain]](scene, rng)


def render_files(root: Path, images: Sequence[Address], *, size: int, seed: int, variety: Variety) -> int:
    """How many images were drawn and written under `root`, each file whole or not at all."""
    for image in images:
        picture = render(
            image.kind,
            image.domain,
            size=size,
            seed=seed,
            split=image.split,
            instance=image.instance,
            variety=variety,
        )
        # Not core.files.atomic: its fsync takes longer than the drawing. `build` syncs once, and checks what it finds.
        path = root / image.path
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
        Image.fromarray(picture).save(unfinished, "PNG")
        os.replace(unfinished, path)
    return len(images)
