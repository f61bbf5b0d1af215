"""The table of thresholds: each row is what counting gives, each threshold one that people can type."""

from __future__ import annotations

import numpy as np
import pytest

from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.threshold_table import threshold_table


def scores_of(known: list[float], opened: list[float], wrong: int = 0) -> OpenSetScores:
    n = len(known) + len(opened)
    is_known = np.arange(n) < len(known)
    return OpenSetScores(np.array([*known, *opened]), is_known & (np.arange(n) >= wrong), is_known, np.zeros(n, bool))


def test_each_row_is_counted() -> None:
    rng = np.random.default_rng(0)
    known, opened = rng.uniform(0.4, 1, 80).tolist(), rng.uniform(0, 0.8, 30).tolist()
    rows = threshold_table(scores_of(known, opened, wrong=7), 0.61803398875)
    assert len(rows) == 11
    assert [row["threshold"] for row in rows] == sorted(row["threshold"] for row in rows)
    assert 0.61803398875 in [row["threshold"] for row in rows], "the one in use is not rounded"
    for row in rows:
        t = row["threshold"]
        assert row["known_called_unknown"] == pytest.approx(sum(score < t for score in known) / 80)
        assert row["open_called_unknown"] == pytest.approx(sum(score < t for score in opened) / 30)
        assert row["named_right"] == pytest.approx(sum(score >= t for score in known[7:]) / 80)
        assert (row["known_images"], row["open_images"]) == (80, 30)
        assert t == 0.61803398875 or len(str(t)) <= 6


def test_scores_close_to_one_are_not_rounded_to_one() -> None:
    known = (1 - np.geomspace(1e-9, 1e-3, 50)).tolist()
    rows = threshold_table(scores_of(known, []), None)
    assert len(rows) == 5
    assert rows[-1]["known_called_unknown"] == 0.5
    assert {row["open_called_unknown"] for row in rows} == {None}


def test_without_images_there_is_only_the_threshold_in_use() -> None:
    assert threshold_table(scores_of([], []), None) == []
    (row,) = threshold_table(scores_of([], []), 0.5)
    assert (row["threshold"], row["named_right"]) == (0.5, None)
    (row,) = threshold_table(scores_of([1.0, 1.0], []), 1.0)
    assert row["known_called_unknown"] == 0
