"""Pictures in rows, each with two lines of text below it, in any script that an installed font covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps

from ltds.core.text import inert

GAP = 6
COLUMNS = 8
TEXT = 13


@dataclass(frozen=True)
class GridPicture:
    """An image, the line below it in `colour`, and a grey line below that."""

    image: Image.Image
    title: str
    remark: str = ""
    colour: str = "black"


def draw_captioned(pictures: Sequence[GridPicture], side: int, columns: int = COLUMNS) -> Image.Image:
    """All pictures, fitted into squares of `side` pixels, up to `columns` in a row."""
    columns = max(1, min(columns, len(pictures)))
    rows = max(1, -(-len(pictures) // columns))
    width, height = side + GAP, side + 2 * (TEXT + 4) + GAP
    grid = Image.new("RGB", (GAP + columns * width, GAP + rows * height), "white")
    pen = ImageDraw.Draw(grid)
    for i, picture in enumerate(pictures):
        x, y = GAP + i % columns * width, GAP + i // columns * height
        small = ImageOps.contain(picture.image, (side, side))
        grid.paste(small, (x + (side - small.width) // 2, y + (side - small.height) // 2))
        for line, (text, colour) in enumerate([(picture.title, picture.colour), (picture.remark, "gray")]):
            text = inert(" ".join(text.split()))  # one line: a name may contain a line break
            font = _font_for(text)
            pen.text((x, y + side + 2 + line * (TEXT + 4)), _shortened(text, font, side), fill=colour, font=font)
    return grid


def _shortened(text: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def _font_for(text: str) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, or the first installed font that has every character of the text."""
    characters = frozenset(map(ord, text)) - {ord(" ")}
    if characters <= _characters(_default_font()):
        return _font(_default_font())
    covering = (file for file in _installed_fonts() if characters <= _characters(file))
    return _font(next(covering, _default_font()))


@cache
def _font(file: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(file, TEXT)


@cache
def _default_font() -> str:
    import matplotlib

    return str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")


@cache
def _installed_fonts() -> tuple[str, ...]:
    from matplotlib.font_manager import findSystemFonts

    return tuple(sorted(findSystemFonts()))


@cache
def _characters(file: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(file).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
