"""Naming unknown images by their descriptions: the open class whose embedding is nearest, and how often it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_arrays
from ltds.core.task import Task
from ltds.evaluation.arrays import FloatArray, IntArray, unit_rows
from ltds.evaluation.features import FeatureTable

RULE = (
    "test images of open classes that are declared unknown, among those with stored features; the name is the open "
    "class whose embedding has the highest cosine to the projected features"
)


def nearest_names(projected: NDArray[np.floating], vectors: NDArray[np.floating]) -> IntArray:
    """(N,) the row of vectors (R,S) with the highest cosine to each row of projected (N,S), ties by index."""
    cosines = unit_rows(projected) @ unit_rows(vectors).T
    nearest: IntArray = cosines.round(12).argmax(axis=1)  # rounded, so that equal vectors tie
    return nearest


def open_name_numbers(
    table: FeatureTable, vectors: Mapping[str, FloatArray], task: Task, unknown_rows: Sequence[int] | IntArray
) -> dict[str, Any]:
    """The "open_names" of metrics.json: accuracy with its images, and what guessing would reach.

    `vectors`: class name -> its embedding (S,). `unknown_rows`: row ids of the images that are declared unknown. The
    accuracy is None without a projection, with fewer than two open classes that have an embedding, or without images.
    """
    named = [c for c in task.open_classes if task.classes[c] in vectors]
    projected = table.diagnostics.get("projected")
    usable = projected is not None and len(projected) == len(table.rows) and len(named) > 1
    judged = np.isin(table.labels, named) & np.isin(table.rows, np.asarray(unknown_rows, dtype=np.int64))
    images = int(np.count_nonzero(judged)) if usable else 0
    accuracy = None
    if images:
        assert projected is not None
        rows = np.stack([vectors[task.classes[c]] for c in named])
        names = np.array(named)[nearest_names(projected[judged], rows)]
        accuracy = float(np.mean(names == table.labels[judged]))
    return {
        "rule": RULE,
        "accuracy": accuracy,
        "images": images,
        "chance": 1 / len(named) if len(named) > 1 else None,
        "classes": [task.classes[c] for c in named],
    }


def stored_vectors(file: Path) -> dict[str, FloatArray]:
    """The class embeddings that a run stored, by name; none if the file is missing or damaged."""
    try:
        stored = read_arrays(file)
        names, vectors = stored["class_names"], stored["vectors"].astype(np.float64)
        return {str(name): vector for name, vector in zip(names, vectors, strict=True)}
    except (OSError, KeyError, ValueError):
        return {}
