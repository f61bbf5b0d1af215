"""A contact sheet of Bestiary: a row for each kind, a column for each style."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from ltds.bestiary.kinds import NAMES
from ltds.bestiary.render import DOMAINS, render
from ltds.core.image_grid import draw_grid


def contact_sheet(*, size: int = 64, kinds: Sequence[int] | None = None) -> Image.Image:
    """One picture of every kind (default: all) in every style, labelled with the names."""
    chosen = range(len(NAMES)) if kinds is None else kinds
    return draw_grid(
        [NAMES[kind] for kind in chosen],
        DOMAINS,
        lambda row, domain: render(chosen[row], domain, size=size),
        size,
    )
