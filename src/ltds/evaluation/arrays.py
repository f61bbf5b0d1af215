"""Types of the NumPy arrays that evaluation and reports pass around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def unit_rows(rows: NDArray[np.floating]) -> FloatArray:
    """The rows, each divided by its length; a row of zeros stays as it is."""
    values = rows.astype(np.float64)
    lengths: FloatArray = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.maximum(lengths, 1e-12)
