"""PredictionTable: the predictions of a model for one split, in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import ArrayFileError, read_arrays
from ltds.core.errors import CheckpointError, DataError, expected
from ltds.core.files import atomic
from ltds.core.task import Task
from ltds.evaluation.arrays import FloatArray, IntArray

REMEDY = "Delete the file DONE of the run, if there is one, and resume the run: it predicts again."


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """The predictions of a model for one split.

    logits (N,C) float32; labels (N,); domains (N,), indices into Task.domains (including the held-out domain);
    rows (N,), row ids of the manifest, each once.
    """

    logits: NDArray[np.float32]
    labels: IntArray
    domains: IntArray
    rows: IntArray

    def __post_init__(self) -> None:
        shapes = {f.name: getattr(self, f.name).shape for f in fields(self)}
        n = self.logits.shape[0] if self.logits.ndim == 2 else None
        if n is None or any(shapes[name] != (n,) for name in ("labels", "domains", "rows")):
            _refuse("its columns", "logits (N,C) and labels, domains, rows (N,)", shapes)
        kinds = {f.name: str(getattr(self, f.name).dtype) for f in fields(self)}
        if kinds != {"logits": "float32", "labels": "int64", "domains": "int64", "rows": "int64"}:
            _refuse("its columns", "float32 logits and int64 labels, domains, rows", kinds)
        # The maximum of a row reveals NaN, +inf and all -inf; single -inf are allowed (columns never predicted).
        bad = np.flatnonzero(~np.isfinite(self.logits.max(axis=1, initial=-np.inf)))
        if len(bad):
            _refuse("its logits", "finite (-inf for columns never predicted)", f"{self.logits[bad[0]]} at {bad[0]}")
        if len(np.unique(self.rows)) != n:
            _refuse("its rows", "each image once", f"{n - len(np.unique(self.rows))} repeated row ids")

    @property
    def probabilities(self) -> FloatArray:
        """(N,C) softmax of the logits in float64, without calibration."""
        p = self.logits.astype(np.float64)
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p

    def check_task(self, split: str, task: Task) -> None:
        """Raise a DataError if the table cannot belong to this task."""
        remedy = f"The predictions are not of the dataset of task '{task.name}'. {REMEDY}"
        sizes = (("label", self.labels, len(task.classes)), ("domain", self.domains, len(task.domains)))
        for what, column, size in sizes:
            if len(column) and not 0 <= column.min() <= column.max() < size:
                got = f"{column.min()}..{column.max()}"
                raise DataError(expected(f"every {what} of the {split} predictions", f"in 0..{size - 1}", got, remedy))
        width = self.logits.shape[1]
        if width != len(task.classes):
            got = f"{width} columns"
            raise DataError(expected(f"the {split} logits", f"of {len(task.classes)} classes", got, remedy))

    def save(self, file: Path) -> None:
        with atomic(file) as stream:
            np.savez(stream, **{f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, file: Path) -> PredictionTable:
        """The table in this file; a CheckpointError if it is missing, damaged or not such a table."""
        try:
            columns = read_arrays(file)
            return cls(**{f.name: columns[f.name] for f in fields(cls)})
        except (OSError, ArrayFileError, KeyError, DataError) as error:
            got = f"{error}" if isinstance(error, ArrayFileError) else f"{type(error).__name__}: {error}"
            message = expected(f"'{file}'", "a complete table of predictions", got, REMEDY)
            raise CheckpointError(message, resume=file.parent.parent) from error


def _refuse(thing: str, rule: str, got: object) -> NoReturn:
    remedy = "Build the table from a single pass of the model over the split."
    raise DataError(expected(f"a table of predictions: {thing}", rule, got, remedy))
