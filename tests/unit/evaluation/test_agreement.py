"""Rank correlations by hand, against scipy, and the pairs that changed places."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltds.core.errors import DataError
from ltds.evaluation.significance import Swap, agreement, descending_ranks, kendall, spearman
from ltds.reporting.paper.tables import preset_averages

VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=9)


def test_by_hand() -> None:
    """Ranks 1 2 3 4 against 2 1 4 3: sum d^2 = 4, rho = 1 - 6*4/60 = 0.6; 4 of 6 pairs agree, tau = (4 - 2)/6."""
    found = agreement({"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0, "only": 9.0}, {"d": 20, "c": 10, "b": 40, "a": 30})
    assert found.methods == ("a", "b", "c", "d")
    assert found.spearman == pytest.approx(0.6)
    assert found.kendall == pytest.approx(1 / 3)
    assert found.swaps == (Swap("a", "b", 1.0, -10, (1.0, 1.0)), Swap("c", "d", 1.0, -10, (1.0, 1.0)))


def test_the_most_reversed_pair_comes_first() -> None:
    found = agreement({"a": 3, "b": 2, "c": 1}, {"a": 1, "b": 2, "c": 3})
    assert (found.spearman, found.kendall) == (pytest.approx(-1), pytest.approx(-1))
    assert [(s.better, s.worse) for s in found.swaps] == [("a", "c"), ("a", "b"), ("b", "c")]
    assert found.swaps[0].ranks == (2, 2)


def test_equal_values_share_their_rank_and_are_no_swap() -> None:
    assert descending_ranks([5, 7, 7, 1]) == [3, 1.5, 1.5, 4]
    assert agreement({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}).swaps == ()


def test_undefined_is_none() -> None:
    assert agreement({"a": 1, "b": 2}, {"a": 1, "b": 2}).spearman is None
    assert agreement({}, {"a": 1}).methods == ()
    same = agreement({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 3})
    assert (same.spearman, same.kendall) == (None, None)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_numbers_of_numpy_are_numbers(kind: type[np.number]) -> None:
    ours, theirs = {"a": 3, "b": 2, "c": 1}, {"a": 1, "b": 3, "c": 2}
    of_numpy = [{name: kind(value) for name, value in table.items()} for table in (ours, theirs)]
    assert agreement(*of_numpy) == agreement(ours, theirs)
    assert all(type(swap.ours) is float for swap in agreement(*of_numpy).swaps)
    assert kendall(np.array([3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(-1 / 3)


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(DataError, match="'b' to be a finite number, but got nan"):
        agreement({"a": 1, "b": math.nan}, {"a": 1, "b": 2})


@settings(deadline=None)  # the first example pays for importing scipy
@given(VALUES)
def test_same_as_scipy(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy comes with scikit-learn, a test dependency")
    first, second = ([float(pair[i]) for pair in pairs] for i in (0, 1))
    if min(len(set(first)), len(set(second))) == 1:
        assert (spearman(first, second), kendall(first, second)) == (None, None)
        return
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)
    assert kendall(first, second) == pytest.approx(stats.kendalltau(first, second).statistic, abs=1e-12)


def test_the_papers_two_datasets() -> None:
    """ImageNet-LTS lacks DAML and the two combinations. The other ten: sum d^2 = 144, rho = 1 - 6*144/990."""
    found = agreement(preset_averages("2", "Acc-U"), preset_averages("3", "Acc-U"))
    assert len(found.methods) == 10
    assert found.spearman == pytest.approx(1 - 864 / 990)
    assert (found.swaps[0].better, found.swaps[0].worse) == ("daml-warmup", "agg")
