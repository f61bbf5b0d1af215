"""Drawing: a figure with its title, caption and text alternative, for the page and for files."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ltds.reporting.figures.canvas import pdf, png, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE_FORMATS: dict[str, Callable[[Figure], bytes]] = {"png": png, "svg": svg, "pdf": pdf}

# Headings under which the page folds several figures together.
OPEN_CLASSES = "Open classes and calibration"
MODEL_INTERNALS = "Domains, features and the semantic space"


@dataclass(frozen=True)
class Drawing:
    """A figure with its words: `caption` tells what to look at, `alt` gives the content of the figure as text.

    `group`: heading under which the page folds it; "" for a figure that is always visible. `pixels`: use PNG in the
    page, because SVG would be larger. `method`, `held_out`: set if the figure shows a single method or domain.
    """

    figure: Figure
    title: str
    caption: str
    alt: str
    group: str = ""
    pixels: bool = False
    method: str = ""
    held_out: str = ""

    @property
    def file_name(self) -> str:
        """A file name made from the title, valid on every system, without an ending."""
        return re.sub(r"[^\w]+", "-", self.title).strip("-_").lower()[:80] or "figure"

    def data_url(self) -> str:
        """The figure as a data: URL."""
        kind, content = ("png", png(self.figure)) if self.pixels else ("svg+xml", svg(self.figure))
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
