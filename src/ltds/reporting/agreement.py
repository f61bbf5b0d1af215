"""Agreement: whether two tables put the same methods in the same order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ltds.core.errors import DataError
from ltds.evaluation.statistics import midranks

FEWEST = 3  # two methods always agree or disagree entirely


@dataclass(frozen=True)
class Swap:
    """Two methods in the order that the first table gives them, `better` before `worse`; the second has it reversed.

    `ours` and `theirs`: value of `better` minus value of `worse`; `ranks`: how many places lie between them in each.
    """

    better: str
    worse: str
    ours: float
    theirs: float
    ranks: tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """Rank correlations in -1..1 over the shared methods; None below three of them, or where all of a table are equal.

    `swaps` are the pairs in reversed order, the most reversed first.
    """

    methods: tuple[str, ...]
    spearman: float | None
    kendall: float | None
    swaps: tuple[Swap, ...]


def agreement(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Agreement:
    """How far two mappings method -> value, higher is better, rank their shared methods alike."""
    methods = tuple(name for name in ours if name in theirs)
    first, second = _values(ours, methods), _values(theirs, methods)
    enough = len(methods) >= FEWEST
    return Agreement(
        methods,
        spearman(first, second) if enough else None,
        kendall(first, second) if enough else None,
        _swaps(methods, first, second),
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation of the ranks, equal values sharing their mean rank; None where all are equal."""
    a, b = (_centred(ranks(values)) for values in (first, second))
    scale = math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else None


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b = (concordant - discordant) / sqrt(pairs untied in one * pairs untied in the other)."""
    pairs = list(combinations(range(len(first)), 2))
    a, b = ([_sign(values[i] - values[j]) for i, j in pairs] for values in (first, second))
    scale = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / scale if scale else None


def ranks(values: Sequence[float]) -> list[float]:
    """1 for the highest; equal values share the mean of their places."""
    return [float(rank) for rank in midranks([-value for value in values])]


def _swaps(methods: Sequence[str], first: Sequence[float], second: Sequence[float]) -> tuple[Swap, ...]:
    places = [ranks(first), ranks(second)]
    swaps = []
    for i, j in combinations(range(len(methods)), 2):
        if (first[i] - first[j]) * (second[i] - second[j]) < 0:
            i, j = (i, j) if first[i] > first[j] else (j, i)
            apart = (abs(places[0][i] - places[0][j]), abs(places[1][i] - places[1][j]))
            swaps.append(Swap(methods[i], methods[j], first[i] - first[j], second[i] - second[j], apart))
    return tuple(sorted(swaps, key=lambda swap: -swap.ranks[0] * swap.ranks[1]))


def _values(table: Mapping[str, float], methods: Sequence[str]) -> list[float]:
    for name in methods:
        if not math.isfinite(table[name]):
            raise DataError(
                f"Expected the value of '{name}' to be a finite number, but got {table[name]}. "
                "Leave methods without a value out of the table."
            )
    return [table[name] for name in methods]


def _centred(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
