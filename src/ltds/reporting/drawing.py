"""Drawing: a figure with the words that go with it, for the page and for files."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ltds.reporting.figures.canvas import pdf, png, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: dict[str, Callable[[Figure], bytes]] = {"png": png, "svg": svg, "pdf": pdf}


@dataclass(frozen=True)
class Drawing:
    """`caption` says what to see, `alt` the same in words; `part`: what it belongs to, "" for what everyone looks at.

    `pixels`: smaller in the page as PNG than as SVG. `method`, `held_out`: the only one it is drawn of, if it is.
    """

    figure: Figure
    title: str
    caption: str
    alt: str
    part: str = ""
    pixels: bool = False
    method: str = ""
    held_out: str = ""

    @property
    def file_name(self) -> str:
        """The title as any system takes it for a file, without an ending."""
        return re.sub(r"[^\w]+", "-", self.title).strip("-_").lower()[:80] or "figure"

    def source(self) -> str:
        """The figure as an address that holds it."""
        kind, content = ("png", png(self.figure)) if self.pixels else ("svg+xml", svg(self.figure))
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
