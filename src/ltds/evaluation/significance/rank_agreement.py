"""Whether two tables put the same methods in the same order: rank correlations and swapped pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ltds.core.errors import DataError
from ltds.evaluation.significance.signed_rank import midranks

MIN_METHODS = 3  # a rank correlation of two methods is always 1 or -1


@dataclass(frozen=True)
class Swap:
    """Two methods that the tables rank in opposite order; `better` is the better one in the first table.

    `ours` and `theirs`: value of `better` minus value of `worse`; `ranks`: difference of their ranks in each table.
    """

    better: str
    worse: str
    ours: float
    theirs: float
    ranks: tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """Rank correlations in -1..1 over the shared methods; None with fewer than three, or if all values are equal.

    `swaps` are the pairs in opposite order, the largest difference of ranks first.
    """

    methods: tuple[str, ...]
    spearman: float | None
    kendall: float | None
    swaps: tuple[Swap, ...]


def agreement(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Agreement:
    """How similarly two mappings method -> value (higher is better) rank the methods that both have."""
    methods = tuple(name for name in ours if name in theirs)
    first, second = _values(ours, methods), _values(theirs, methods)
    enough = len(methods) >= MIN_METHODS
    return Agreement(
        methods,
        spearman(first, second) if enough else None,
        kendall(first, second) if enough else None,
        _swaps(methods, first, second),
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation of the ranks, equal values share their mean rank; None if all values are equal."""
    a, b = (_centred(descending_ranks(values)) for values in (first, second))
    scale = math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else None


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b = (concordant - discordant) / sqrt(pairs untied in one * pairs untied in the other)."""
    pairs = list(combinations(range(len(first)), 2))
    a, b = ([_sign(values[i] - values[j]) for i, j in pairs] for values in (first, second))
    scale = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else None


def descending_ranks(values: Sequence[float]) -> list[float]:
    """1 for the highest; equal values share the mean of their ranks."""
    return [float(rank) for rank in midranks([-value for value in values])]


def _swaps(methods: Sequence[str], first: Sequence[float], second: Sequence[float]) -> tuple[Swap, ...]:
    both_ranks = [descending_ranks(first), descending_ranks(second)]
    swaps = []
    for i, j in combinations(range(len(methods)), 2):
        if (first[i] - first[j]) * (second[i] - second[j]) < 0:
            i, j = (i, j) if first[i] > first[j] else (j, i)
            apart = (abs(both_ranks[0][i] - both_ranks[0][j]), abs(both_ranks[1][i] - both_ranks[1][j]))
            swaps.append(Swap(methods[i], methods[j], first[i] - first[j], second[i] - second[j], apart))
    return tuple(sorted(swaps, key=lambda swap: -swap.ranks[0] * swap.ranks[1]))


def _values(table: Mapping[str, float], methods: Sequence[str]) -> list[float]:
    for name in methods:
        if not math.isfinite(table[name]):
            raise DataError(
                f"Expected the value of '{name}' to be a finite number, but got {table[name]}. "
                "Leave methods without a value out of the table."
            )
    return [float(table[name]) for name in methods]


def _centred(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _sign(value: float) -> int:
    return int(value > 0) - int(value < 0)  # NumPy's booleans have no minus
