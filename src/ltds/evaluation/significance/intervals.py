"""Mean and interval over seeds, and the paired difference of two methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.evaluation.significance.signed_rank import DIGITS, wilcoxon
from ltds.evaluation.significance.student import t_bound

LEVEL = 0.95


@dataclass(frozen=True)
class SeedSummary:
    """Mean, sample standard deviation and interval over `n` seeds; a single seed has only a mean."""

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

    The interval is Student's t. A bootstrap would never leave the range of the seeds, so with three of them it would
    contain the true mean at most 75 % of the time.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return None
    spread = float(x.std(ddof=1)) if x.size > 1 else None
    low, high = _interval(x)
    return SeedSummary(float(x.mean()), spread, low, high, x.size)


def paired_difference(differences: Mapping[str, Sequence[float]]) -> PairedDifference | None:
    """The difference of two methods, from held-out domain -> one difference per seed; None without pairs.

    The mean is the mean over domains of the domain means, so it equals the gap between two averages in a table. The
    interval is Student's t over the domain means: it is about other domains of this kind. Pairs of one domain are
    correlated; an interval over the pairs would treat, say, 15 correlated pairs as independent. With one domain it is
    over its seeds, and about this domain only; a single pair has no interval.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in differences.values() if len(values)]
    if not groups:
        return None
    pairs = np.concatenate(groups)
    signs = np.sign(np.round(pairs, DIGITS))
    means = np.array([group.mean() for group in groups])
    low, high = _interval(means if means.size > 1 else pairs)
    return PairedDifference(
        mean=float(means.mean()),
        low=low,
        high=high,
        wins=int((signs > 0).sum()),
        ties=int((signs == 0).sum()),
        losses=int((signs < 0).sum()),
        p=wilcoxon(pairs),
    )


def _interval(values: FloatArray) -> tuple[float, float] | tuple[None, None]:
    """Student's t interval of the mean of what the values were drawn from; none for a single value."""
    if values.size < 2:
        return None, None
    half = t_bound(LEVEL, values.size - 1) * values.std(ddof=1) / math.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)
