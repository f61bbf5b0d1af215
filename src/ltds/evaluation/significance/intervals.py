"""Mean and bootstrap interval over seeds, and the paired difference of two methods. NumPy only, the same each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ltds.core.rng import numpy_generator
from ltds.evaluation.arrays import BoolArray, FloatArray, IntArray
from ltds.evaluation.significance.signed_rank import DIGITS, wilcoxon

LEVEL = 0.95
DRAWS = 5_000


@dataclass(frozen=True)
class SeedSummary:
    """Mean, sample standard deviation and bootstrap interval over `n` seeds; a single seed has only a mean."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class PairedDifference:
    """One method minus another over pairs of runs with the same held-out domain and seed.

    `p` is the two-sided p-value of Wilcoxon's signed-rank test, before any correction.
    """

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


def summary(values: Sequence[float]) -> SeedSummary | None:
    """Summary of one value per seed; None without values.

    The interval is a percentile bootstrap. It never leaves the range of the seeds, so it contains the true mean of
    symmetric noise at most as often as `coverage_limit` says: with three seeds no method does much better.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return None
    if x.size == 1:
        return SeedSummary(float(x[0]), None, None, None, 1)
    low, high = _percentiles(x[_resamples(x.size)].mean(axis=1))
    return SeedSummary(float(x.mean()), float(x.std(ddof=1)), low, high, x.size)


def coverage_limit(n: int) -> float:
    """How often an interval within the range of n values can contain the median of their source; at most LEVEL.

    It misses the median when all n values lie on the same side of it, which has probability 2 (1/2)^n.
    """
    return min(LEVEL, 1 - 2.0 ** (1 - n)) if n > 1 else 0.0


def paired_difference(differences: Mapping[str, Sequence[float]]) -> PairedDifference | None:
    """The difference of two methods, from held-out domain -> one difference per seed; None without pairs.

    The mean is the mean over domains of the domain means, so it equals the gap between two averages in a table. The
    interval is a two-stage bootstrap: it draws domains, then seeds within each domain. Pairs of one domain are
    correlated; drawing pairs directly would treat, say, 15 correlated pairs as independent. With one domain only
    seeds are drawn; a single pair has no interval.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in differences.values() if len(values)]
    if not groups:
        return None
    pairs = np.concatenate(groups)
    signs = np.sign(np.round(pairs, DIGITS))
    low, high = _percentiles(_two_stage_means(groups)) if pairs.size > 1 else (None, None)
    return PairedDifference(
        mean=float(np.mean([group.mean() for group in groups])),
        low=low,
        high=high,
        wins=int((signs > 0).sum()),
        ties=int((signs == 0).sum()),
        losses=int((signs < 0).sum()),
        p=wilcoxon(pairs),
    )


@lru_cache(maxsize=32)
def _resamples(n: int) -> IntArray:
    """(DRAWS, n) indices drawn with replacement; the same for every set of n values."""
    return numpy_generator(0, "bootstrap", n).integers(0, n, (DRAWS, n))


def _two_stage_means(groups: Sequence[FloatArray]) -> FloatArray:
    """(DRAWS,) means over domains drawn with replacement of means over seeds drawn with replacement."""
    sizes = tuple(group.size for group in groups)
    table = np.zeros((len(groups), max(sizes)))
    for row, group in zip(table, groups, strict=True):
        row[: group.size] = group
    places, drawn, counts = _two_stage_draws(sizes)
    means: FloatArray = ((table.reshape(-1)[places] * drawn).sum(axis=2) / counts).mean(axis=1)
    return means


@lru_cache(maxsize=4)
def _two_stage_draws(sizes: tuple[int, ...]) -> tuple[IntArray, BoolArray, IntArray]:
    """The same for all groups of these sizes: places (DRAWS, G, most) in their table, which of them count, how many."""
    most, of_group = max(sizes), np.array(sizes)
    rng = numpy_generator(0, "paired bootstrap", len(sizes), most)
    domains = rng.integers(0, len(sizes), (DRAWS, len(sizes), 1))
    seeds = (rng.random((DRAWS, len(sizes), most)) * of_group[domains]).astype(np.int64)
    return domains * most + seeds, np.arange(most) < of_group[domains], of_group[domains[..., 0]]


def _percentiles(means: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
