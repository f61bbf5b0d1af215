"""Attributes: class embeddings from properties that people gave each class (furry 0.8, stripes 0, ...)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.awa2 import numbered_names, with_unrated_as_mean
from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.semantics.embeddings import ClassEmbeddings, rows_without
from ltds.semantics.tables import read_table

ONE_PACKAGE = "The files must come from the same package."
COPY_AGAIN = "Copy it again from the unpacked AWA2 base package."


def from_attributes_csv(file: Path, hidden: Sequence[str] = (), known: Sequence[str] = ()) -> ClassEmbeddings:
    """Embeddings from a table `class, attribute, attribute, ...`, such as a dataset's semantics/attributes.csv.

    `hidden` classes are left out, even when the attributes are scaled; `known`: the other classes of the dataset.
    """
    table = read_table(Path(file))
    rows = rows_without(table.names, hidden, known)
    table = replace(table, names=tuple(table.names[i] for i in rows), values=table.values[rows])
    kept = _varying(table.values)
    provenance = {
        "file": Path(file).name,
        "sha256": sha256(Path(file)),
        "attributes": [name for name, keep in zip(table.columns, kept, strict=True) if keep],
        "scaling": "standardised over classes",
    }
    return _embeddings(table.names, table.values, str(file), provenance)


def from_awa2(folder: Path) -> ClassEmbeddings:
    """Embeddings from the files of AWA2: classes.txt and predicate-matrix-continuous.txt.

    The few entries that nobody rated (-1) become the mean of the other classes, so that they say nothing about the
    class. If predicates.txt exists too, the provenance has the names of the attributes.
    """
    classes, matrix = Path(folder) / "classes.txt", Path(folder) / "predicate-matrix-continuous.txt"
    predicates = Path(folder) / "predicates.txt"
    for file in (classes, matrix):
        if not file.is_file():
            remedy = "Name the folder of the unpacked AWA2 base package."
            raise DataError(expected(f"'{file}'", "a file", "nothing there", remedy))
    names, values = numbered_names(classes), _matrix(matrix)
    if len(values) != len(names):
        raise DataError(expected(f"'{matrix}'", f"{len(names)} rows, one per class", len(values), ONE_PACKAGE))
    attributes = numbered_names(predicates) if predicates.is_file() else None
    if attributes is not None and len(attributes) != values.shape[1]:
        rule = f"{values.shape[1]} names, one per column of the matrix"
        raise DataError(expected(f"'{predicates}'", rule, len(attributes), ONE_PACKAGE))
    values = with_unrated_as_mean(values)
    provenance: dict[str, object] = {
        "file": matrix.name,
        "sha256": {file.name: sha256(file) for file in (classes, matrix, predicates) if file.is_file()},
        "scaling": "standardised over classes",
    }
    if attributes is not None:
        provenance["attributes"] = [name for name, keep in zip(attributes, _varying(values), strict=True) if keep]
    return _embeddings(names, values, str(matrix), provenance)


def _matrix(file: Path) -> NDArray[np.float64]:
    """(classes, attributes), every row of one length."""
    rows: list[list[float]] = []
    try:
        for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
            rows.append([float(cell) for cell in line.split()])
    except ValueError as error:  # an undecodable byte is one too
        got = f"'{error}' after {len(rows)} rows"
        raise DataError(expected(f"'{file}'", "a matrix of numbers", got, COPY_AGAIN)) from error
    odd = next((i for i, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if odd is not None:
        rule, got = f"a matrix of {len(rows[0])} numbers in every row", f"{len(rows[odd])} in row {odd + 1}"
        raise DataError(expected(f"'{file}'", rule, got, COPY_AGAIN))
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 0)


def _embeddings(
    names: tuple[str, ...], values: NDArray[np.float64], source: str, provenance: Mapping[str, object]
) -> ClassEmbeddings:
    """Each attribute scaled to mean 0 and standard deviation 1 over the classes, so that all weigh the same.

    An attribute that is the same for all classes is left out.
    """
    kept = _varying(values)
    if not kept.any():
        remedy = "Add attributes in which the classes differ."
        raise DataError(expected(f"the attributes in '{source}'", "different between classes", "none", remedy))
    values = values[:, kept]
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    return ClassEmbeddings(names, torch.from_numpy(standard), provenance)


def _varying(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    varying: NDArray[np.bool_] = np.ptp(values, axis=0) > 0
    return varying
