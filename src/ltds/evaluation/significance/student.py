"""Student's t distribution for a whole number of degrees of freedom, by its finite sums."""

from __future__ import annotations

import math
from functools import lru_cache

HALVINGS = 60  # of an interval of length pi / 2: below the precision of a float


@lru_cache
def t_bound(level: float, degrees: int) -> float:
    """The bound within which |t| lies with probability `level`."""
    low, high = 0.0, math.pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """P(|t| <= sqrt(degrees) tan(angle)): Abramowitz and Stegun 26.7.3 and 26.7.4."""
    odd = degrees % 2
    squared = math.cos(angle) ** 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, degrees, 2):  # each term is squared * k / (k + 1) times the one before
        total += term
        term *= squared * k / (k + 1)
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
