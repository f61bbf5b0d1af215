"""Which test images the retrieval figure shows: three queries and their nearest neighbours in the semantic space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltds.core.task import Task
from ltds.evaluation.arrays import IntArray
from ltds.evaluation.features import FeatureTable

NEIGHBOURS = 5


@dataclass(frozen=True)
class RetrievalExample:
    """A query and its neighbours, nearest first, as positions in a FeatureTable."""

    query: int
    neighbours: tuple[int, ...]


def retrieval_examples(table: FeatureTable, task: Task) -> list[RetrievalExample]:
    """A query of a head, a middle and a tail class, from the held-out domain if possible, with its neighbours.

    Empty for a method without a semantic space.
    """
    projected = table.diagnostics.get("projected")
    if projected is None or len(projected) != len(table.rows):
        return []
    held_out = table.domains == (task.domains.index(task.held_out) if task.held_out else -1)
    examples = []
    for label in _head_middle_tail(table, task):
        candidates = np.flatnonzero(table.labels == label)
        query = int(candidates[np.argmax(held_out[candidates])])
        examples.append(RetrievalExample(query, tuple(nearest_rows(projected, query).tolist())))
    return examples


def nearest_rows(projected: NDArray[np.floating], query: int) -> IntArray:
    """(NEIGHBOURS,) the rows with the highest cosine to row `query`, without it, ties by index. projected (N,S)."""
    points = projected.astype(np.float64)
    length = np.linalg.norm(points, axis=1)
    cosine = points @ points[query] / np.maximum(length * length[query], 1e-12)
    cosine[query] = -np.inf
    return np.argsort(-cosine.round(12), kind="stable")[: min(NEIGHBOURS, len(points) - 1)]


def _head_middle_tail(table: FeatureTable, task: Task) -> list[int]:
    """The most frequent, the middle and the rarest trained class among those that have images in the table."""
    available = set(table.labels.tolist())
    by_frequency = np.argsort(-task.class_counts, kind="stable")
    order = [int(c) for c in by_frequency if c in available and task.class_counts[c]]
    return [order[i] for i in sorted({0, len(order) // 2, len(order) - 1})] if order else []
