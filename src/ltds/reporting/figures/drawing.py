"""Drawing: a figure with its title, caption and text alternative, for the page and for files."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ltds.reporting.figures.canvas import pdf, png, svg
from ltds.reporting.figures.inline import PIXELS_PER_POINT, inline_svg

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
    `figure`: the figure, or a function that draws it when it is needed. `page_svg`: what the page shows in its place,
    where hundreds of figures by matplotlib would take minutes.
    """

    figure: Figure | Callable[[], Figure]
    title: str
    caption: str
    alt: str
    group: str = ""
    pixels: bool = False
    method: str = ""
    held_out: str = ""
    page_svg: str = ""

    def drawn(self) -> Figure:
        """The figure itself."""
        return self.figure() if callable(self.figure) else self.figure

    @property
    def file_name(self) -> str:
        """A file name made from the title, valid on every system, without an ending."""
        return re.sub(r"[^\w]+", "-", self.title).strip("-_").lower()[:80] or "figure"

    def html(self, number: int) -> str:
        """The figure as an element of a page, where it is the figure with this number."""
        if self.page_svg:
            return inline_svg(self.page_svg, number, self.alt)
        figure = self.drawn()
        if not self.pixels:
            return inline_svg(svg(figure).decode(), number, self.alt)
        width = f"max-width:{72 * figure.get_size_inches()[0] * PIXELS_PER_POINT:.0f}px"
        content = base64.b64encode(png(figure)).decode()
        return f'<img src="data:image/png;base64,{content}" style="{width}" alt="{html.escape(self.alt)}">'
