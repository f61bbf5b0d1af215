"""PredictionTable: what a model said of one split, in memory and on disk."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import CheckpointError, DataError, expected
from ltds.core.files import atomic
from ltds.evaluation.metrics import Floats, Ints


@dataclass(frozen=True)
class PredictionTable:
    """What a model said of one split.

    logits (N,C) float32; labels (N,); domains (N,), indices into Task.domains, held-out one included;
    rows (N,), manifest row ids, each once.
    """

    logits: NDArray[np.float32]
    labels: Ints
    domains: Ints
    rows: Ints

    def __post_init__(self) -> None:
        shapes = {f.name: getattr(self, f.name).shape for f in fields(self)}
        n = self.logits.shape[0] if self.logits.ndim == 2 else None
        if n is None or any(shapes[name] != (n,) for name in ("labels", "domains", "rows")):
            _refuse("its columns", "logits (N,C) and labels, domains, rows (N,)", shapes)
        kinds = {f.name: str(getattr(self, f.name).dtype) for f in fields(self)}
        if kinds != {"logits": "float32", "labels": "int64", "domains": "int64", "rows": "int64"}:
            _refuse("its columns", "float32 logits and int64 labels, domains, rows", kinds)
        # A row's max shows NaN, +inf and nothing but -inf; some -inf (columns that are never predicted) may stay.
        bad = np.flatnonzero(~np.isfinite(self.logits.max(axis=1, initial=-np.inf)))
        if len(bad):
            _refuse("its logits", "finite (-inf for columns never predicted)", f"{self.logits[bad[0]]} at {bad[0]}")
        if len(np.unique(self.rows)) != n:
            _refuse("its rows", "each image once", f"{n - len(np.unique(self.rows))} repeated row ids")

    @property
    def probabilities(self) -> Floats:
        """(N,C) softmax of the logits, no calibration, in float64."""
        p = self.logits.astype(np.float64)
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def save(self, file: Path) -> None:
        with atomic(file) as stream:
            np.savez(stream, **{f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, file: Path) -> PredictionTable:
        """The table in this file, or CheckpointError where it is missing, damaged or not such a table."""
        try:
            with zipfile.ZipFile(file) as archive:
                damaged = archive.testzip()  # numpy stops before the checksum where a header asks for less
            if damaged is not None:
                raise ValueError(f"{damaged} is damaged")
            with np.load(file, allow_pickle=False) as columns:
                return cls(**{f.name: columns[f.name] for f in fields(cls)})
        except Exception as error:  # a damaged zip fails in many ways; all of them mean the same to the user
            got = f"{type(error).__name__}: {error}"
            remedy = "If the run is finished, delete its file DONE; then 'ltds train --resume RUN' predicts again."
            raise CheckpointError(expected(f"'{file}'", "a complete table of predictions", got, remedy)) from error


def _refuse(thing: str, rule: str, got: object) -> NoReturn:
    remedy = "Build the table from one pass of the model over the split."
    raise DataError(expected(f"a table of predictions: {thing}", rule, got, remedy))
