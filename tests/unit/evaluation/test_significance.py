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

from ltds.evaluation.significance import (
    holm,
    midranks,
    paired_difference,
    ranks,
    summary,
    t_bound,
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
    half = 4.302653 * math.sqrt(7 / 3)  # the printed table of t, two degrees of freedom
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), rel=1e-6)
    one = summary([4.0])
    assert one is not None
    assert (one.mean, one.sd, one.low, one.high, one.n) == (4.0, None, None, None, 1)
    assert summary([]) is None


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 41])
def test_interval_of_a_mean_agrees_with_scipy(n: int) -> None:
    values = np.random.default_rng(n).normal(5, 2, n)
    found = summary(values.tolist())
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_t_bound_agrees_with_scipy(level: float) -> None:
    degrees = [*range(1, 40), 99, 100, 1000]
    theirs = scipy_stats.t.ppf((1 + level) / 2, degrees)
    assert [t_bound(level, d) for d in degrees] == pytest.approx(theirs.tolist(), rel=1e-10)


@pytest.mark.parametrize(("domains", "seeds"), [(2, 3), (4, 5)])
def test_intervals_of_domains_that_differ_hold_the_truth_as_often_as_they_say(domains: int, seeds: int) -> None:
    """A bootstrap over domains and seeds holds it 66 % and 79 % of the time here."""
    rng = np.random.default_rng(domains)
    held = 0
    for _ in range(400):
        values = 3 * rng.normal(size=(domains, 1)) + rng.normal(size=(domains, seeds))
        found = paired_difference({str(d): row.tolist() for d, row in enumerate(values)})
        held += found.low <= 0 <= found.high
    assert 0.91 <= held / 400 <= 0.98


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
    two = paired_difference({"photo": [1.0], "sketch": [3.0]})
    assert two is not None
    assert (two.low, two.high) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)


def test_paired_interval_is_that_of_the_domain_means() -> None:
    groups = {"a": [5.0, 5.5, 4.5], "b": [0.5, 0.0, 1.0], "c": [2.0, 2.5], "d": [3.0, 3.1, 2.7, 3.3]}
    found = paired_difference(groups)
    assert found is not None
    theirs = scipy_stats.ttest_1samp([5.0, 0.5, 2.25, 3.025], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    pooled = summary([v for values in groups.values() for v in values])
    assert pooled is not None
    assert pooled.low is not None
    assert pooled.high is not None
    assert found.high - found.low > 1.8 * (pooled.high - pooled.low)  # pairs of one domain are not as many witnesses


def test_with_one_domain_the_interval_is_over_its_seeds() -> None:
    found, seeds = paired_difference({"a": [5.0, 5.5, 4.5], "b": []}), summary([5.0, 5.5, 4.5])
    assert found is not None
    assert seeds is not None
    assert (found.low, found.high) == (seeds.low, seeds.high)


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_the_interval_holds_the_mean_and_turns_with_the_sign(groups: list[list[float]]) -> None:
    here = paired_difference({str(i): g for i, g in enumerate(groups)})
    there = paired_difference({str(i): [-v for v in g] for i, g in enumerate(groups)})
    assert here is not None
    assert there is not None
    assert here.mean == pytest.approx(-there.mean)
    assert here.p == pytest.approx(there.p)
    if here.low is not None and here.high is not None and there.low is not None:
        assert here.low - 1e-9 <= here.mean <= here.high + 1e-9
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
