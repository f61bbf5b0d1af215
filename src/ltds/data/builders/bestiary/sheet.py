"""A contact sheet of the bestiary: kinds down, domains across."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from ltds.data.builders.bestiary.kinds import NAMES
from ltds.data.builders.bestiary.pose import Variety
from ltds.data.builders.bestiary.render import DOMAINS, render
from ltds.data.sheet import draw_sheet


def contact_sheet(
    *,
    size: int = 64,
    seed: int = 0,
    kinds: Sequence[int] | None = None,
    variety: Variety = Variety(),  # noqa: B008 (frozen)
) -> Image.Image:
    """One picture of every kind (default: all) in every domain, labelled with the names."""
    chosen = range(len(NAMES)) if kinds is None else kinds
    return draw_sheet(
        [NAMES[kind] for kind in chosen],
        DOMAINS,
        lambda row, domain: render(chosen[row], domain, size=size, seed=seed, variety=variety),
        size,
    )
