"""Ranks of methods over blocks (held-out domain and seed): Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from ltds.evaluation.arrays import FloatArray
from ltds.evaluation.significance.intervals import LEVEL
from ltds.evaluation.significance.signed_rank import DIGITS, midranks


def block_ranks(values: ArrayLike, higher_is_better: bool = True) -> FloatArray:
    """(complete blocks, M) ranks, 1 is best; equal values share their mean rank. values (B,M); NaN: incomplete."""
    table = np.round(np.asarray(values, dtype=np.float64), DIGITS)
    complete = table[np.isfinite(table).all(axis=1)]
    signed = -complete if higher_is_better else complete
    return np.array([midranks(block) for block in signed]).reshape(-1, table.shape[1])


def friedman(ranks: FloatArray) -> tuple[float, float]:
    """Friedman's chi-squared, corrected for ties, and its p-value. ranks (B,M). If everything is tied: (0, 1)."""
    blocks, methods = ranks.shape
    spread = float(((ranks.mean(axis=0) - (methods + 1) / 2) ** 2).sum())
    within = float(((ranks - (methods + 1) / 2) ** 2).sum()) / (blocks * (methods - 1))
    statistic = blocks * spread / within if within > 0 else 0.0
    return statistic, chi_squared_tail(statistic, methods - 1)


def critical_difference(methods: int, blocks: int) -> float:
    """The smallest significant gap of two mean ranks in Nemenyi's test at 5 %: q sqrt(k (k+1) / (6 N))."""
    return studentized_range(methods) / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * blocks))


def cliques(mean_ranks: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """(first, last mean rank) of each maximal group in which no two methods are more than `gap` apart."""
    order = sorted(mean_ranks)
    groups: list[tuple[float, float]] = []
    for first in order:
        last = max(rank for rank in order if rank - first <= gap)
        if last > first and not (groups and groups[-1][1] >= last):
            groups.append((first, last))
    return groups


def chi_squared_tail(x: float, degrees: int) -> float:
    """P(chi-squared > x) for an integer number of degrees of freedom, by a recurrence in steps of two degrees."""
    half = x / 2
    tail = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    term = math.sqrt(4 * half / math.pi) * math.exp(-half) if degrees % 2 else half * math.exp(-half)
    for done in range(2 - degrees % 2, degrees, 2):
        tail += term
        term *= half / (done / 2 + 1)
    return min(1.0, tail)


@lru_cache(maxsize=64)
def studentized_range(k: int) -> float:
    """The 95 % quantile of the range of k standard normal values: k ∫ φ(z) (Φ(z) - Φ(z - q))^(k-1) dz = LEVEL."""
    z = np.linspace(-9, 9, 3601)
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    low, high = 0.0, 20.0
    for _ in range(60):
        q = (low + high) / 2
        inside = below - np.interp(z - q, z, below, left=0.0)
        chance = k * float((density * inside ** (k - 1)).sum()) * (z[1] - z[0])
        low, high = (q, high) if chance < LEVEL else (low, q)
    return (low + high) / 2
