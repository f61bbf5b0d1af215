"""ClassEmbeddings: a unit vector for each class name, and how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.core.matching import match_names, plain_spelling
from ltds.core.text import few
from ltds.semantics.tables import read_table

_UNIT = 1e-6


@dataclass(frozen=True, eq=False)
class ClassEmbeddings:
    """Class names and their vectors s (C,S), float32 with unit rows; other rows are scaled to length 1.

    `provenance` says how they were made (file, key, text, model), for the run's record.
    """

    names: tuple[str, ...]
    vectors: Tensor
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = torch.as_tensor(self.vectors).to(torch.float64)
        _check(self.names, rows)
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        scaled = torch.where((length - 1).abs() < _UNIT, rows, rows / length)  # unit rows stay bit for bit
        object.__setattr__(self, "vectors", scaled.float())

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    def aligned_to(self, classes: Sequence[str]) -> ClassEmbeddings:
        """The embeddings of these classes, in this order.

        Names match exactly, or else by their `plain_spelling` ("grizzly+bear", "Grizzly_bear", "grizzly bear"), where
        only one name on each side is meant: HER2+ and HER2- are two classes.
        """
        matches = match_names(self.names, classes, plain_spelling)
        rows = [i for i in matches if i is not None]
        if len(rows) < len(classes):
            missing = [name for name, i in zip(classes, matches, strict=True) if i is None]
            raise DataError(_missing(missing, self.names))
        return ClassEmbeddings(tuple(classes), self.vectors[rows], self.provenance)

    def without(self, hidden: Sequence[str], known: Sequence[str]) -> ClassEmbeddings:
        """The embeddings without those of the hidden classes; `known`: the other classes of the dataset."""
        rows = rows_without(self.names, hidden, known)
        return ClassEmbeddings(tuple(self.names[i] for i in rows), self.vectors[rows], self.provenance)

    @classmethod
    def from_table(cls, file: Path, *, names: Sequence[str] | None = None, key: str | None = None) -> ClassEmbeddings:
        """The embeddings in a file of numbers, one row for each class.

        .csv (first column the class), .npy (names given, or one per line in a .txt of the same name), .npz and MATLAB
        .mat (`key` names the array if there are several; names given, or in an array such as `class_names`).
        """
        table = read_table(Path(file), names=names, key=key)
        return cls(table.names, torch.from_numpy(table.values), {"file": Path(file).name, "key": table.key})


def rows_without(names: Sequence[str], hidden: Sequence[str], known: Sequence[str]) -> list[int]:
    """The rows of a table with these names that tell nothing about the hidden classes.

    Spellings differ as `aligned_to` allows. Where two classes differ only in that (HER2+ is known, HER2- hidden), the
    row that belongs to the known class stays.
    """
    rows = [i for i, name in enumerate(names) if name not in hidden]
    matches = match_names([names[i] for i in rows], known, plain_spelling)
    kept, spellings = {rows[i] for i in matches if i is not None}, set(map(plain_spelling, hidden))
    return [i for i in rows if i in kept or plain_spelling(names[i]) not in spellings]


def _missing(missing: list[str], known: Sequence[str]) -> str:
    hints = missing.copy()
    for i, name in enumerate(missing[:5]):  # as many as are named
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        hints[i] = f"'{name}' (nearest: '{close[0]}')" if close else f"'{name}'"
    remedy = "Add rows for them to the table, or rename the classes in it."
    return f"Expected an embedding for every class, but got none for {few(hints)}. {remedy}"


def _check(names: tuple[str, ...], rows: Tensor) -> None:
    if rows.dim() != 2 or rows.shape[0] != len(names) or rows.shape[1] == 0:
        shape, remedy = tuple(rows.shape), "Give one row per class name."
        raise DataError(expected("class embeddings", f"a table of {len(names)} rows, one per name", shape, remedy))
    twice = sorted(name for name, n in Counter(names).items() if n > 1)
    if twice:
        remedy = "Delete or rename the repeated rows."
        raise DataError(expected("the class names of embeddings", "unique", f"repeated: {', '.join(twice)}", remedy))
    bad = [name for name, row in zip(names, rows, strict=True) if not bool(torch.isfinite(row).all())]
    if bad:
        remedy = "Correct those rows: NaN often means a word without a vector."
        raise DataError(expected("class embeddings", "finite numbers", f"NaN or inf for {', '.join(bad)}", remedy))
    zero = [name for name, row in zip(names, rows, strict=True) if not bool(row.any())]
    if zero:
        remedy = "A class needs a direction: give it a vector, or leave the class out."
        raise DataError(expected("class embeddings", "other than zero", f"zero for {', '.join(zero)}", remedy))
