"""Statistics of a few seeds: mean and interval, paired difference, Wilcoxon, Holm. NumPy only, the same each time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltds.core.rng import numpy_generator

Floats = NDArray[np.float64]
LEVEL = 0.95
DRAWS = 5_000
EXACT = 25  # pairs up to which Wilcoxon's distribution is counted out
DIGITS = 9  # values that agree to this many decimals are equal: 0.3 - 0.2 and 0.2 - 0.1 are a tie


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation and bootstrap interval over `n` seeds; one seed has a mean alone."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Difference:
    """What one method has over another in the same places. `p` is Wilcoxon's, two-sided, before any correction."""

    mean: float
    low: float | None
    high: float | None
    wins: int
    ties: int
    losses: int
    p: float | None

    @property
    def pairs(self) -> int:
        return self.wins + self.ties + self.losses


def summary(values: Sequence[float]) -> Summary | None:
    """The summary of one value for each seed; None of no values.

    The interval is the percentile bootstrap's. It never leaves the range of the seeds, so that it holds the true mean
    of symmetric noise at most as often as `coverage_limit` says: three seeds are crude, whatever is done with them.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return None
    if x.size == 1:
        return Summary(float(x[0]), None, None, None, 1)
    low, high = _percentiles(x[_resamples(x.size)].mean(axis=1))
    return Summary(float(x.mean()), float(x.std(ddof=1)), low, high, x.size)


def coverage_limit(n: int) -> float:
    """The most often that an interval within the range of n values holds the median of their source, at most LEVEL.

    It misses where all n lie on one side of it, which happens with probability 2 (1/2)^n.
    """
    return min(LEVEL, 1 - 2.0 ** (1 - n)) if n > 1 else 0.0


def paired_difference(differences: Mapping[str, Sequence[float]]) -> Difference | None:
    """The difference of two methods from held-out domain -> one difference for each seed; None of no pairs.

    The mean is that of the domains' means, so it is the gap of two averages in a table. The interval is a bootstrap in
    two stages: domains are drawn first, then seeds within each, because pairs of one domain are alike, and drawing
    pairs would take fifteen of them for fifteen witnesses. One domain leaves the seeds to draw; one pair no interval.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in differences.values() if len(values)]
    if not groups:
        return None
    pairs = np.concatenate(groups)
    signs = np.sign(np.round(pairs, DIGITS))
    low, high = _percentiles(_two_stage_means(groups)) if pairs.size > 1 else (None, None)
    return Difference(
        mean=float(np.mean([group.mean() for group in groups])),
        low=low,
        high=high,
        wins=int((signs > 0).sum()),
        ties=int((signs == 0).sum()),
        losses=int((signs < 0).sum()),
        p=wilcoxon(pairs),
    )


def wilcoxon(differences: ArrayLike) -> float | None:
    """Two-sided p of Wilcoxon's signed-rank test; zeros are dropped, tied sizes share their ranks. None of no pairs.

    Up to EXACT pairs the distribution is counted out, ties included; above, the normal approximation corrected for
    ties. It takes the pairs as independent: where those of one domain are alike, p is smaller than it should be.
    """
    x = np.round(np.asarray(differences, dtype=np.float64), DIGITS)
    if x.size == 0:
        return None
    x = x[x != 0]
    if x.size == 0:
        return 1.0
    doubled = np.rint(2 * midranks(np.abs(x))).astype(np.int64)  # ties make halves: twice a rank is whole
    positive = int(doubled[x > 0].sum())
    return _exact(doubled, positive) if x.size <= EXACT else _normal(doubled, positive)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values after Holm's step-down correction for as many comparisons as have one."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[i] = largest
    return adjusted


def midranks(values: ArrayLike) -> Floats:
    """(N,) ranks from 1 for the smallest; equal values share the mean of their ranks."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks


def _exact(doubled: NDArray[np.int64], positive: int) -> float:
    """Each rank is added or not with probability 1/2; the distribution of the sum, one rank at a time."""
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        added = np.zeros_like(chance)
        added[rank:] = chance[: chance.size - rank]
        chance = (chance + added) / 2
    return min(1.0, 2 * float(min(chance[: positive + 1].sum(), chance[positive:].sum())))


def _normal(doubled: NDArray[np.int64], positive: int) -> float:
    n = doubled.size
    _, ties = np.unique(doubled, return_counts=True)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (positive / 2 - n * (n + 1) / 4) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


@lru_cache(maxsize=32)
def _resamples(n: int) -> NDArray[np.int64]:
    """(DRAWS, n) places drawn with replacement; the same for every set of n values."""
    return numpy_generator(0, "bootstrap", n).integers(0, n, (DRAWS, n))


def _two_stage_means(groups: Sequence[Floats]) -> Floats:
    """(DRAWS,) means over domains drawn with replacement of means over seeds drawn with replacement."""
    sizes = np.array([group.size for group in groups])
    table = np.zeros((len(groups), int(sizes.max())))
    for row, group in zip(table, groups, strict=True):
        row[: group.size] = group
    rng = numpy_generator(0, "paired bootstrap", len(groups), table.shape[1])
    domains = rng.integers(0, len(groups), (DRAWS, len(groups), 1))
    seeds = (rng.random((DRAWS, *table.shape)) * sizes[domains]).astype(np.int64)
    drawn = np.arange(table.shape[1]) < sizes[domains]
    means: Floats = ((table[domains, seeds] * drawn).sum(axis=2) / sizes[domains[..., 0]]).mean(axis=1)
    return means


def _percentiles(means: Floats) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
