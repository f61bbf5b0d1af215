"""FeatureTable: what a model made of some test images before it decided, kept for figures."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.files import atomic
from ltds.core.rng import numpy_generator
from ltds.evaluation.metrics import Floats, Ints

SIZE = 2000  # images: enough for any figure, and 2 MB at 512 features
COLUMNS = ("features", "labels", "domains", "rows")
LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class FeatureTable:
    """features (N,D) float16; labels, domains, rows (N,), as in PredictionTable.

    Images stand in the order in which they were drawn, so that the first few of them are a draw, too.
    `views`: what the method shows of itself, see `Method.views`.
    """

    features: NDArray[np.float16]
    labels: Ints
    domains: Ints
    rows: Ints
    views: dict[str, NDArray[np.float16]] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        columns |= {f"view.{name}": value for name, value in self.views.items()}
        with atomic(file) as stream:
            np.savez_compressed(stream, **columns)

    @classmethod
    def load(cls, file: Path) -> FeatureTable | None:
        """The table in this file; None where there is none, or none that can be read: only figures need it."""
        try:
            with np.load(file, allow_pickle=False) as stored:
                views = {name.removeprefix("view."): stored[name] for name in stored.files if name.startswith("view.")}
                return cls(**{name: stored[name] for name in COLUMNS}, views=views)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            return None


def drawn_rows(rows: Ints, size: int = SIZE) -> Ints:
    """(min(N,size),) some of these row ids (N,), in random order; the same for every run on the same images."""
    return numpy_generator(0, "figures/features").permutation(rows)[:size]


def half(values: Floats | NDArray[np.float32]) -> NDArray[np.float16]:
    """The values in half the space; one that is too large becomes the largest that there is."""
    return np.clip(values, -LARGEST, LARGEST).astype(np.float16)
