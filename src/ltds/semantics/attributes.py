"""Attributes: class embeddings from what people say of a class (furry 0.8, stripes 0, ...)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.semantics.tables import read_table

AWA2_MISSING = -1.0
"""How AWA2's continuous matrix marks an attribute nobody rated."""


def from_attributes_csv(file: Path, without: Collection[str] = ()) -> ClassEmbeddings:
    """Embeddings from a table `class, attribute, attribute, ...`, such as a dataset's semantics/attributes.csv.

    Classes `without` which to do take no part in scaling the attributes either.
    """
    table = read_table(Path(file))
    rows = [i for i, name in enumerate(table.names) if name not in without]
    table = replace(table, names=tuple(table.names[i] for i in rows), values=table.values[rows])
    kept = _varying(table.values)
    provenance = {
        "file": Path(file).name,
        "attributes": [name for name, keep in zip(table.columns, kept, strict=True) if keep],
        "scaling": "standardised over classes",
    }
    return _embeddings(table.names, table.values, str(file), provenance)


def from_awa2(folder: Path) -> ClassEmbeddings:
    """Embeddings from AWA2's own files: classes.txt and predicate-matrix-continuous.txt.

    The few entries that nobody rated (-1) take the mean of the other classes, and so count for nothing.
    """
    classes, matrix = Path(folder) / "classes.txt", Path(folder) / "predicate-matrix-continuous.txt"
    for file in (classes, matrix):
        if not file.is_file():
            remedy = "Name the folder of the unpacked AWA2 base package."
            raise DataError(expected(f"'{file}'", "a file", "nothing there", remedy))
    names = tuple(line.split()[-1] for line in classes.read_text(encoding="utf-8").splitlines() if line.strip())
    values = np.loadtxt(matrix, dtype=np.float64, ndmin=2)
    if len(values) != len(names):
        remedy = "The two files must come from the same package."
        raise DataError(expected(f"'{matrix}'", f"{len(names)} rows, one per class", len(values), remedy))
    rated = np.where(values == AWA2_MISSING, np.nan, values)
    values = np.where(np.isnan(rated), np.nanmean(rated, axis=0), rated)
    provenance = {"file": matrix.name, "scaling": "standardised over classes"}
    return _embeddings(names, values, str(matrix), provenance)


def _embeddings(
    names: tuple[str, ...], values: NDArray[np.float64], source: str, provenance: Mapping[str, object]
) -> ClassEmbeddings:
    """Each attribute to mean 0 and deviation 1 over the classes, so that no unit of measure outweighs another.

    An attribute that is the same for all classes says nothing and is left out.
    """
    kept = _varying(values)
    if not kept.any():
        remedy = "Add attributes in which the classes differ."
        raise DataError(expected(f"the attributes in '{source}'", "different between classes", "none that is", remedy))
    values = values[:, kept]
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    return ClassEmbeddings(names, torch.from_numpy(standard), provenance)


def _varying(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    varying: NDArray[np.bool_] = np.ptp(values, axis=0) > 0
    return varying
