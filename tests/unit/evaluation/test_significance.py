"""Statistics against numbers by hand, SciPy, brute force, and their own promises."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltds.core.rng import numpy_generator
from ltds.evaluation.significance import (
    coverage_limit,
    holm,
    intervals,
    midranks,
    paired_difference,
    ranks,
    summary,
    wilcoxon,
)

scipy_stats = pytest.importorskip("scipy.stats")
whole = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=10)


def wilcoxon_by_enumeration(differences: list[float]) -> float:
    """All 2^n signs, in plain loops."""
    sizes = [abs(d) for d in differences if d]
    ordered = sorted(sizes)
    rank = [sum(i + 1 for i, v in enumerate(ordered) if v == s) / ordered.count(s) for s in sizes]
    got = sum(r for r, d in zip(rank, [d for d in differences if d], strict=True) if d > 0)
    sums = [
        sum(r for r, s in zip(rank, signs, strict=True) if s) for signs in itertools.product((0, 1), repeat=len(rank))
    ]
    below, above = sum(s <= got + 1e-9 for s in sums), sum(s >= got - 1e-9 for s in sums)
    return min(1.0, 2 * min(below, above) / len(sums))


def test_summary_by_hand() -> None:
    found = summary([1.0, 2.0, 6.0])
    assert found is not None
    assert (found.mean, found.n) == (3.0, 3)
    assert found.sd == pytest.approx(math.sqrt(7))
    # 1/27 of all resamples is 1 three times, more than 2.5 %: the interval of three seeds is their range
    assert (found.low, found.high) == (1.0, 6.0)
    one = summary([4.0])
    assert one is not None
    assert (one.mean, one.sd, one.low, one.high, one.n) == (4.0, None, None, None, 1)
    assert summary([]) is None


def test_interval_agrees_with_scipy_where_there_are_many_values() -> None:
    values = np.random.default_rng(3).normal(5, 2, 40)
    found = summary(values.tolist())
    theirs = scipy_stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert found is not None
    assert [found.low, found.high] == pytest.approx(list(theirs.confidence_interval), abs=0.05)


@pytest.mark.parametrize(("n", "limit"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.95), (50, 0.95)])
def test_coverage_never_passes_the_limit(n: int, limit: float) -> None:
    assert coverage_limit(n) == pytest.approx(limit)
    if 1 < n < 6:
        draws = np.random.default_rng(1).normal(size=(400, n))
        held = [s.low <= 0 <= s.high for s in map(summary, draws.tolist())]
        assert np.mean(held) < limit + 0.06


@given(whole)
@settings(max_examples=60, deadline=None)
def test_exact_wilcoxon_is_the_enumeration_ties_and_zeros_included(differences: list[float]) -> None:
    assert wilcoxon(differences) == pytest.approx(wilcoxon_by_enumeration(differences))
    assert wilcoxon([-d for d in differences]) == pytest.approx(wilcoxon(differences))


@pytest.mark.parametrize("n", [6, 15, 25])
def test_exact_wilcoxon_agrees_with_scipy(n: int) -> None:
    x = np.random.default_rng(n).normal(0.4, 1, n)
    assert wilcoxon(x) == pytest.approx(scipy_stats.wilcoxon(x, method="exact").pvalue)


@pytest.mark.parametrize("digits", [1, 8])
def test_many_pairs_agree_with_scipys_normal_approximation_with_and_without_ties(digits: int) -> None:
    x = np.round(np.random.default_rng(0).normal(0.2, 1, 60), digits)
    theirs = scipy_stats.wilcoxon(x, method="asymptotic", correction=False).pvalue
    assert wilcoxon(x) == pytest.approx(theirs)


def test_wilcoxon_ends() -> None:
    assert wilcoxon([]) is None
    assert wilcoxon([0.0, 0.0]) == 1.0
    assert wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 32)  # five pairs cannot reach .05
    assert wilcoxon([0.3 - 0.2, 0.1 - 0.2]) == 1.0  # equal but for the last bits


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, None, 0.005]) == pytest.approx([0.03, 0.06, 0.06, None, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_paired_difference_counts_and_weighs_domains_alike() -> None:
    found = paired_difference({"photo": [2.0, 4.0, 0.0], "sketch": [-1.0]})
    assert found is not None
    assert found.mean == (2.0 - 1.0) / 2
    assert (found.wins, found.ties, found.losses, found.pairs) == (2, 1, 1, 4)
    assert paired_difference({"photo": []}) is None
    lone = paired_difference({"photo": [1.0]})
    assert lone is not None
    assert (lone.low, lone.high, lone.p) == (None, None, 1.0)
    two = paired_difference({"photo": [1.0, 3.0]})
    assert two is not None
    assert (two.low, two.high) == (1.0, 3.0)


def two_stage_interval(groups: list[list[float]], draws: int, rng: np.random.Generator) -> list[float]:
    """The slow twin: a loop over draws, domains and seeds."""
    means = []
    for _ in range(draws):
        picked = [groups[rng.integers(len(groups))] for _ in groups]
        means.append(np.mean([np.mean([g[rng.integers(len(g))] for _ in g]) for g in picked]))
    return list(np.quantile(means, [0.025, 0.975]))


def test_paired_interval_agrees_with_its_slow_twin_and_respects_domains() -> None:
    groups = {"a": [5.0, 5.5, 4.5], "b": [0.5, 0.0, 1.0], "c": [2.0, 2.5], "d": [3.0, 3.1, 2.7, 3.3]}
    found = paired_difference(groups)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    twin = two_stage_interval(list(groups.values()), 1500, np.random.default_rng(0))
    assert [found.low, found.high] == pytest.approx(twin, abs=0.2)
    pooled = summary([v for values in groups.values() for v in values])
    assert pooled is not None
    assert pooled.low is not None
    assert pooled.high is not None
    assert found.high - found.low > 1.3 * (pooled.high - pooled.low)  # pairs of one domain are not as many witnesses


def test_draws_that_are_kept_are_those_of_a_single_use() -> None:
    """The groups in another order or of other sizes need other draws; the same sizes, the same ones."""
    first, second = {"a": [1.0, 4.0, 2.0], "b": [3.0]}, {"a": [1.0, 4.0], "b": [3.0, 7.0], "c": [0.5, 0.1]}
    once = [repr(paired_difference(groups)) for groups in (first, second)]
    intervals._two_stage_draws.cache_clear()
    assert repr(paired_difference(second)) == once[1]
    assert repr(paired_difference(first)) == once[0]
    sizes = np.array([3, 1])
    rng = numpy_generator(0, "paired bootstrap", 2, 3)
    domains = rng.integers(0, 2, (intervals.DRAWS, 2, 1))
    seeds = (rng.random((intervals.DRAWS, 2, 3)) * sizes[domains]).astype(np.int64)
    table = np.array([[1.0, 4.0, 2.0], [3.0, 0.0, 0.0]])
    drawn = table[domains, seeds] * (np.arange(3) < sizes[domains])
    means = (drawn.sum(axis=2) / sizes[domains[..., 0]]).mean(axis=1)
    np.testing.assert_array_equal(intervals._two_stage_means([np.array(v) for v in first.values()]), means)


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_the_interval_lies_within_the_domains_and_turns_with_the_sign(groups: list[list[float]]) -> None:
    here = paired_difference({str(i): g for i, g in enumerate(groups)})
    there = paired_difference({str(i): [-v for v in g] for i, g in enumerate(groups)})
    assert here is not None
    assert there is not None
    assert here.mean == pytest.approx(-there.mean)
    assert here.p == pytest.approx(there.p)
    if here.low is not None and here.high is not None and there.low is not None:
        assert min(map(min, groups)) - 1e-9 <= here.low <= here.high <= max(map(max, groups)) + 1e-9
        assert here.high == pytest.approx(-there.low)


def test_ranks_average_ties_and_leave_out_incomplete_blocks() -> None:
    assert midranks([3.0, 1.0, 3.0]).tolist() == [2.5, 1.0, 2.5]
    table = [[0.5, 0.7, 0.7], [0.1, math.nan, 0.2], [0.3, 0.2, 0.1]]
    assert ranks.block_ranks(table).tolist() == [[3, 1.5, 1.5], [1, 2, 3]]
    assert ranks.block_ranks(table, higher_is_better=False).tolist() == [[1, 2.5, 2.5], [3, 2, 1]]
    assert ranks.block_ranks([[math.nan, 1.0]]).shape == (0, 2)


@pytest.mark.parametrize("digits", [0, 6])
@pytest.mark.parametrize("methods", [3, 4, 7])
def test_friedman_agrees_with_scipy(methods: int, digits: int) -> None:
    values = np.round(np.random.default_rng(methods).normal(np.arange(methods) / 4, 1, (12, methods)), digits)
    theirs = scipy_stats.friedmanchisquare(*values.T)
    assert ranks.friedman(ranks.block_ranks(values)) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_friedman_of_equal_methods() -> None:
    assert ranks.friedman(np.full((4, 3), 2.0)) == (0.0, 1.0)


@pytest.mark.parametrize("k", [2, 3, 5, 10, 20, 40])
def test_critical_difference_is_demsars(k: int) -> None:
    q = scipy_stats.studentized_range.ppf(0.95, k, np.inf)
    assert ranks.studentized_range(k) == pytest.approx(q, abs=2e-4)
    assert ranks.critical_difference(k, 15) == pytest.approx(q / math.sqrt(2) * math.sqrt(k * (k + 1) / 90), abs=1e-3)


def test_critical_difference_of_the_textbook() -> None:
    """Demšar 2006: four classifiers, fourteen datasets, q = 2.569, CD = 1.25."""
    assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_cliques_are_the_longest_stretches() -> None:
    assert ranks.cliques([1.0, 2.0, 2.5, 4.0], 1.5) == [(1.0, 2.5), (2.5, 4.0)]
    assert ranks.cliques([1.0, 3.0], 1.5) == []
    assert ranks.cliques([2.0, 2.0], 0.1) == []
    assert ranks.cliques([3.0, 1.0, 2.0], 5.0) == [(1.0, 3.0)]


def test_chi_squared_tail_agrees_with_scipy() -> None:
    for degrees, x in itertools.product(range(1, 25), (0.0, 0.3, 4.0, 30.0)):
        assert ranks.chi_squared_tail(x, degrees) == pytest.approx(scipy_stats.chi2.sf(x, degrees), abs=1e-12)


def test_neither_scipy_nor_torch_is_needed() -> None:
    loaded = "[name for name in ('scipy', 'torch') if name in sys.modules]"
    code = f"import sys, ltds.evaluation as e; e.significance.studentized_range(3); print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
