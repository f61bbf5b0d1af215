"""What a visitor may ask of the server: how large, how many, how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ltds.core.errors import ConfigError, expected
from ltds.data.decode import MOST_PIXELS


@dataclass(frozen=True)
class ServeLimits:
    """`most_bytes` and `most_pixels` of one image; `connections` at a time; `seconds` to send a request in."""

    most_bytes: int = 20_000_000
    most_pixels: int = 50_000_000
    connections: int = 8
    seconds: float = 30.0


def limits_of(max_mb: float, max_megapixels: float) -> ServeLimits:
    """The limits for images of so many megabytes and millions of pixels."""
    if not 0 < max_mb < math.inf:
        remedy = "Choose how large an image may be."
        raise ConfigError(expected("argument 'max_mb'", "a finite number above 0", max_mb, remedy))
    most = MOST_PIXELS / 1e6
    if not 0 < max_megapixels <= most:
        remedy = "Choose how many pixels an image may have."
        raise ConfigError(
            expected("argument 'max_megapixels'", f"above 0 and at most {most:.0f}", max_megapixels, remedy)
        )
    return ServeLimits(most_bytes=round(max_mb * 1e6), most_pixels=round(max_megapixels * 1e6))
