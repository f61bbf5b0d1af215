"""Long-tailed counts and which domains hold which class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ltds.core.errors import DataError
from ltds.data.build.longtail import deal, domains_of_classes, largest_tail, longtail_counts, split_over_domains

FIXTURES = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


def test_awa2_counts_of_the_fixture() -> None:
    if not FIXTURES.is_file():
        pytest.skip(f"the worked examples are not at {FIXTURES}")
    example = json.loads(FIXTURES.read_text())["examples"]["longtail_counts_awa2"]
    inputs, want = example["inputs"], example["expected"]
    counts = longtail_counts(inputs["C"], inputs["nmax"], inputs["nmin"])
    assert counts.tolist() == want["counts"]
    assert counts.sum() == want["total"]
    assert counts[0] / counts[-1] == want["imbalance_ratio"]


def test_awa2_counts() -> None:
    counts = longtail_counts(50, 1565, 20)
    assert counts[:11].tolist() == [1565, 839, 648, 532, 450, 388, 340, 301, 268, 241, 218]
    assert counts[-5:].tolist() == [23, 22, 21, 20, 20]
    assert counts.sum() == 8464


@pytest.mark.parametrize("classes", [2, 3, 7, 50])
def test_counts_end_at_the_smallest_in_spite_of_rounding(classes: int) -> None:
    """22 x (15 / 22) is 14.999999999999998 in floating point."""
    assert longtail_counts(classes, 22, 15)[-1] == 15
    for n_min in range(1, 41):
        assert longtail_counts(classes, 40, n_min)[[0, -1]].tolist() == [40, n_min]


def test_equal_ends_make_equal_counts_and_two_classes_are_the_ends() -> None:
    assert longtail_counts(7, 30, 30).tolist() == [30] * 7
    assert longtail_counts(2, 100, 3).tolist() == [100, 3]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, 10, 1), "Expected the number of classes to be at least 2, but got 1"),
        ((5, 3, 4), "but got n_min=4, n_max=3"),
        ((5, 3, 0), "but got n_min=0, n_max=3"),
    ],
)
def test_counts_that_cannot_be(arguments: tuple[int, int, int], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        longtail_counts(*arguments)


@pytest.mark.parametrize("exclusive", [0, 1, 2])
def test_each_domain_owns_its_exclusive_classes(exclusive: int) -> None:
    allowed = domains_of_classes(50, 5, np.random.default_rng(0), exclusive=exclusive)
    assert allowed.shape == (5, 50)
    sizes = allowed.sum(axis=0)
    assert sizes[:10].tolist() == [5] * 10, "the head is everywhere"
    alone = sizes == 1
    assert allowed[:, alone].sum(axis=1).tolist() == [exclusive] * 5
    assert not alone[:25].any(), "exclusive classes come from the rarer half"
    rest = sizes[10:][~alone[10:]]
    assert (np.diff(rest) <= 0).all()
    assert (rest[0], rest[-1]) == (4, 2)


def test_too_few_classes_for_the_exclusive_ones() -> None:
    with pytest.raises(DataError, match="Expected the number of classes to be at least 10, as each of 5 domains has 1"):
        domains_of_classes(9, 5, np.random.default_rng(0))


def test_a_class_is_split_over_its_domains_and_leaves_none_empty() -> None:
    allowed = np.array([True, False, True, True])
    shares = split_over_domains(3000, allowed, np.random.default_rng(0))
    assert shares.sum() == 3000
    assert shares[1] == 0
    assert np.abs(shares[allowed] - 1000).max() < 120
    for seed in range(20):
        assert (split_over_domains(3, allowed, np.random.default_rng(seed)) == allowed).all()


def test_fewer_images_than_domains_leave_some_empty() -> None:
    shares = split_over_domains(2, np.ones(4, dtype=np.bool_), np.random.default_rng(0))
    assert sorted(shares) == [0, 0, 1, 1]
    assert split_over_domains(0, np.ones(4, dtype=np.bool_), np.random.default_rng(0)).sum() == 0


@pytest.mark.parametrize(("count", "domains"), [(30, 5), (20, 5), (7, 3), (2, 4), (0, 2)])
def test_dealing_is_even_and_random(count: int, domains: int) -> None:
    dealt = deal(count, domains, np.random.default_rng(0))
    times = np.bincount(dealt, minlength=domains)
    assert times.sum() == count
    assert times.max() - times.min() <= 1
    assert dealt.dtype == np.int64


def test_dealing_differs_with_the_generator() -> None:
    one, other = (deal(30, 5, np.random.default_rng(seed)) for seed in (0, 1))
    assert one.tolist() != other.tolist()
    assert one.tolist() != sorted(one.tolist())


def test_the_largest_tail_fits_and_one_more_would_not() -> None:
    available = np.array([100, 90, 12, 40, 9])
    counts = largest_tail(available, 10.0)
    assert (counts <= available).all()
    assert counts.tolist() == longtail_counts(5, int(counts[0]), round(int(counts[0]) / 10)).tolist()
    larger = longtail_counts(5, int(counts[0]) + 1, round((int(counts[0]) + 1) / 10))
    assert (larger > available).any()
    assert largest_tail(np.array([5, 5, 5]), 1.0).tolist() == [5, 5, 5]
    with pytest.raises(DataError, match="present with at least one image"):
        largest_tail(np.array([5, 0, 5]), 2.0)


@pytest.mark.parametrize(
    ("classes", "domains", "exclusive"), [(6, 3, 1), (4, 2, 1), (12, 3, 2), (13, 3, 2), (50, 5, 1)]
)
def test_every_domain_owns_its_classes_however_few_there_are(classes: int, domains: int, exclusive: int) -> None:
    allowed = domains_of_classes(classes, domains, np.random.default_rng(3), fewest=2, exclusive=exclusive)
    owned = allowed[:, allowed.sum(axis=0) == 1]
    assert owned.sum(axis=1).tolist() == [exclusive] * domains
    assert allowed[:, : classes // 2].sum(axis=0).min() >= 2
