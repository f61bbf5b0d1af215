"""One picture, a pure function of its kind, style, split, number and seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltds.bestiary.kinds import KINDS
from ltds.bestiary.pose import Variety
from ltds.bestiary.scene import compose
from ltds.bestiary.styles import STYLES
from ltds.core.errors import DataError, expected
from ltds.core.rng import numpy_generator

DOMAINS: tuple[str, ...] = tuple(STYLES)
RENDERER = 1
"""Raised whenever a picture changes, so that old folders are not taken for new ones."""

SMALLEST, LARGEST = 16, 224


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
    """(size, size, 3) the picture that these arguments name; it does not depend on what else is drawn."""
    if not SMALLEST <= size <= LARGEST:
        raise DataError(
            expected("the size", f"{SMALLEST}..{LARGEST}", size, "Draw larger and scale down, or the reverse.")
        )
    rng = numpy_generator(seed, f"bestiary/{split}", kind, domain, instance)
    scene = compose(KINDS[kind], rng, size=size, variety=variety)
    return STYLES[DOMAINS[domain]](scene, rng)
