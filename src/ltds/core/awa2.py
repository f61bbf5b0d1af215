"""AWA2's files of classes and attributes, from which datasets and class embeddings are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.text import text_lines

UNRATED = -1.0  # in AWA2's continuous matrix: nobody rated this attribute of this class


def numbered_names(file: Path) -> tuple[str, ...]:
    """The names in AWA2's classes.txt or predicates.txt ('   2\\tgrizzly+bear')."""
    return tuple(line.split()[-1] for line in text_lines(file))


def with_unrated_as_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(classes, attributes) with the mean of the other classes where nobody rated: it says nothing about the class."""
    rated = np.where(values == UNRATED, np.nan, values)
    return np.where(np.isnan(rated), np.nanmean(rated, axis=0), rated)
