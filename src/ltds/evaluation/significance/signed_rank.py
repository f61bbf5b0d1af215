"""Wilcoxon's signed-rank test, Holm's correction, and ranks with ties. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ltds.evaluation.arrays import FloatArray, IntArray

EXACT = 25  # up to this many pairs the p-value is computed from the exact distribution
DIGITS = 9  # values that agree to this many decimals count as equal: 0.3 - 0.2 and 0.2 - 0.1 are a tie


def wilcoxon(differences: ArrayLike) -> float | None:
    """Two-sided p-value of Wilcoxon's signed-rank test; None without pairs.

    Zero differences are dropped, and differences of equal size share their mean rank. Up to EXACT pairs the
    distribution is exact, ties included; above that it is the normal approximation corrected for ties. The test
    assumes independent pairs: where the pairs of one domain are correlated, p comes out too small.
    """
    x = np.round(np.asarray(differences, dtype=np.float64), DIGITS)
    if x.size == 0:
        return None
    x = x[x != 0]
    if x.size == 0:
        return 1.0
    doubled = np.rint(2 * midranks(np.abs(x))).astype(np.int64)  # ties give half ranks; twice a rank is an integer
    positive = int(doubled[x > 0].sum())
    return _exact(doubled, positive) if x.size <= EXACT else _normal(doubled, positive)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values after Holm's step-down correction; None entries stay None and do not count as comparisons."""
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[i] = largest
    return adjusted


def midranks(values: ArrayLike) -> FloatArray:
    """(N,) ranks, 1 for the smallest; equal values share the mean of their ranks."""
    _, inverse, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(count) - (count - 1) / 2)[inverse]
    return ranks


def _exact(doubled: IntArray, positive: int) -> float:
    """Under the null hypothesis each rank is positive with probability 1/2: build the distribution of their sum."""
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        added = np.zeros_like(chance)
        added[rank:] = chance[: chance.size - rank]
        chance = (chance + added) / 2
    return min(1.0, 2 * float(min(chance[: positive + 1].sum(), chance[positive:].sum())))


def _normal(doubled: IntArray, positive: int) -> float:
    n = doubled.size
    _, ties = np.unique(doubled, return_counts=True)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (positive / 2 - n * (n + 1) / 4) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))
