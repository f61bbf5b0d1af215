"""Pictures with text below them."""

from __future__ import annotations

from PIL import Image, ImageChops

from ltds.core.captioned_grid import GridPicture, draw_captioned


def test_a_line_break_in_a_name_is_a_space() -> None:
    image = Image.new("RGB", (8, 8))
    broken, spaced = (draw_captioned([GridPicture(image, name)], 64) for name in ("new\r\nline", "new line"))
    assert ImageChops.difference(broken, spaced).getbbox() is None
