"""Names for unknown images against a slow twin, and what the number rests on."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ltds.core.task import Task
from ltds.evaluation.features import FeatureTable
from ltds.evaluation.naming import nearest_names, open_name_numbers, stored_vectors

# c1, c3 and c4 have no training images.
TASK = Task("t", ("c0", "c1", "c2", "c3", "c4"), ("a", "b"), "b", np.array([[3, 0, 4, 0, 0]]))


def slow_name(row: list[float], vectors: list[list[float]]) -> int:
    """The first vector of highest cosine, with loops."""
    best, found = -math.inf, -1
    for i, vector in enumerate(vectors):
        product = sum(a * b for a, b in zip(row, vector, strict=True))
        lengths = math.sqrt(sum(a * a for a in row)) * math.sqrt(sum(b * b for b in vector))
        cosine = round(product / max(lengths, 1e-12), 12)
        if cosine > best:
            best, found = cosine, i
    return found


def slow_numbers(
    table: FeatureTable, vectors: dict[str, np.ndarray], unknown: list[int]
) -> tuple[float | None, int, float]:
    names = [c for c in (1, 3, 4) if f"c{c}" in vectors]
    right = total = 0
    for row, label, point in zip(table.rows, table.labels, table.diagnostics["projected"], strict=True):
        if label in names and row in unknown:
            chosen = names[slow_name(point.tolist(), [vectors[f"c{c}"].tolist() for c in names])]
            right, total = right + (chosen == label), total + 1
    return right / total if total else None, total, 1 / len(names)


def make_table(seed: int, images: int = 40) -> FeatureTable:
    rng = np.random.default_rng(seed)
    labels, rows = rng.integers(0, 5, images), rng.permutation(3 * images)[:images]
    projected = rng.normal(size=(images, 3)).astype(np.float16)
    empty = np.zeros((images, 2), np.float16)
    return FeatureTable(empty, labels, np.zeros_like(labels), rows, {"projected": projected})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("known", [("c0", "c1", "c2", "c3", "c4"), ("c4", "c1")])
def test_it_is_the_slow_twin(seed: int, known: tuple[str, ...]) -> None:
    rng, table = np.random.default_rng(seed + 100), make_table(seed)
    vectors = {name: rng.normal(size=3) for name in known}
    unknown = table.rows[::2].tolist()
    numbers = open_name_numbers(table, vectors, TASK, unknown)
    assert (numbers["accuracy"], numbers["images"], numbers["chance"]) == slow_numbers(table, vectors, unknown)
    assert 0 < numbers["images"] < 40
    assert numbers["classes"] == sorted(set(known) & {"c1", "c3", "c4"})


def test_the_length_of_a_vector_does_not_matter_and_equal_ones_tie_by_index() -> None:
    points, vectors = np.array([[3.0, 0], [0, 0.5], [1, 1], [0, 0]]), np.array([[0.1, 0], [0, 9], [0, 2], [5.0, 0]])
    assert nearest_names(points, vectors).tolist() == [0, 1, 0, 0]
    assert [slow_name(p, vectors.tolist()) for p in points.tolist()] == [0, 1, 0, 0]


def test_without_what_it_needs_there_is_no_number() -> None:
    table, vectors = make_table(0), {f"c{c}": np.eye(3)[c % 3] for c in range(5)}
    rows = table.rows.tolist()
    assert open_name_numbers(table, vectors, TASK, rows)["accuracy"] is not None
    nothing = open_name_numbers(table, vectors, TASK, [])
    assert (nothing["accuracy"], nothing["images"], nothing["chance"]) == (None, 0, 1 / 3)
    plain = FeatureTable(table.features, table.labels, table.domains, table.rows)
    assert open_name_numbers(plain, vectors, TASK, rows)["images"] == 0
    one = open_name_numbers(table, {"c0": vectors["c0"], "c3": vectors["c3"]}, TASK, rows)
    assert (one["accuracy"], one["images"], one["chance"]) == (None, 0, None), "a single name is no choice"


def test_embeddings_of_a_run_by_name(tmp_path: Path) -> None:
    assert stored_vectors(tmp_path / "none.npz") == {}
    (tmp_path / "bad.npz").write_bytes(b"PK")
    assert stored_vectors(tmp_path / "bad.npz") == {}
    np.savez(tmp_path / "good.npz", class_names=np.array(["a", "b"]), vectors=np.array([[1, 2], [3, 4]], np.float32))
    stored = stored_vectors(tmp_path / "good.npz")
    assert {name: vector.tolist() for name, vector in stored.items()} == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
