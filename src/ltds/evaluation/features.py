"""FeatureTable: the features of some test images and the method's diagnostics, stored for figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_arrays
from ltds.core.files import atomic
from ltds.core.rng import numpy_generator
from ltds.evaluation.arrays import FloatArray, IntArray

SIZE = 2000  # images: enough for every figure, and 2 MB at 512 features
COLUMNS = ("features", "labels", "domains", "rows")
PREFIX = "diagnostics."
LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """features (N,D) float16; labels, domains, rows (N,), as in PredictionTable.

    Images are in the order in which they were drawn, so the first n of them are a random draw, too.
    `diagnostics`: arrays that the method provides about itself, see `Method.diagnostics`.
    """

    features: NDArray[np.float16]
    labels: IntArray
    domains: IntArray
    rows: IntArray
    diagnostics: dict[str, NDArray[np.float16]] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        columns |= {f"{PREFIX}{name}": value for name, value in self.diagnostics.items()}
        with atomic(file) as stream:
            np.savez_compressed(stream, **columns)

    @classmethod
    def load(cls, file: Path) -> FeatureTable | None:
        """The table in this file; None if it is missing or cannot be read, because only figures need it."""
        try:
            stored = read_arrays(file)
            names = [name for name in stored if name.startswith(PREFIX)]
            diagnostics = {name.removeprefix(PREFIX): stored[name] for name in names}
            table = cls(**{name: stored[name] for name in COLUMNS}, diagnostics=diagnostics)
            return table if table._is_consistent() else None
        except (OSError, KeyError, ValueError):
            return None

    def _is_consistent(self) -> bool:
        """Whether the arrays fit together, as `save` wrote them."""
        indices = (self.labels, self.domains, self.rows)
        return (
            self.features.ndim == 2
            and all(i.shape == self.features.shape[:1] and i.dtype.kind in "iu" for i in indices)
            and all(not i.size or i.min() >= 0 for i in indices)
            and all(numbers.dtype.kind == "f" for numbers in (self.features, *self.diagnostics.values()))
        )


def drawn_rows(rows: IntArray) -> IntArray:
    """(min(N,SIZE),) some of these row ids (N,), in random order; the same for every run on the same images."""
    return numpy_generator(0, "figures/features").permutation(rows)[:SIZE]


def to_float16(values: FloatArray | NDArray[np.float32]) -> NDArray[np.float16]:
    """The values as float16; a value that is too large becomes the largest float16."""
    return np.clip(values, -LARGEST, LARGEST).astype(np.float16)
