"""Comparison: each method against a reference, over the pairs of runs that share held-out domain and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import ConfigError, nearest
from ltds.evaluation.ranks import block_ranks, critical_difference, friedman
from ltds.evaluation.statistics import Difference, holm, paired_difference, wilcoxon
from ltds.reporting.cells import Cell, Column, by_seed, cell_of, detail_group
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import MAIN, Metric
from ltds.reporting.paper import printed_value

ALPHA = 0.05
BASELINE = "agg"


@dataclass(frozen=True)
class Versus:
    """One method minus another, in points. `p` is after Holm; `seeds` are those that the pairs have."""

    difference: Difference
    p: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """What the pairs show. Both must speak: the test over pairs, and the interval over domains and seeds."""
        low, high = self.difference.low, self.difference.high
        if self.seeds < 2 or low is None or high is None or self.p is None:
            return "one seed"
        if self.p <= ALPHA and (low > 0 or high < 0):
            return "better" if low > 0 else "worse"
        return "no difference shown"


@dataclass(frozen=True)
class Row:
    """A method: its number, what it has over the reference (None for itself), its mean rank, the paper's number."""

    label: str
    cell: Cell
    versus: Versus | None
    rank: float | None
    printed: float | None


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over `blocks` pairs of held-out domain and seed that every method has; 1 is best."""

    mean_ranks: dict[str, float]
    blocks: int
    friedman_p: float
    gap: float


@dataclass(frozen=True)
class Comparison:
    """All methods in one metric over `group`, against `reference`."""

    dataset: str
    group: str
    metric: Metric
    reference: str
    rows: tuple[Row, ...]
    ranking: Ranking | None


def comparisons(dataset: Dataset, wanted: str | None = None) -> tuple[Comparison, ...]:
    """A comparison for each main metric in which some method shares more than one pair with the reference."""
    if len(dataset.rows) < 2:
        return ()
    reference = reference_of(dataset, wanted)
    made = (_comparison(dataset, metric, reference) for metric in MAIN)
    return tuple(table for table in made if any(row.versus and row.versus.difference.pairs > 1 for row in table.rows))


def reference_of(dataset: Dataset, wanted: str | None = None) -> str:
    """The row to compare with: the wanted label or method, else the baseline, else the first row."""
    for name in (wanted, BASELINE):
        for label, runs in dataset.rows.items():
            if name in (label, runs[0].method):
                return label
    return next(iter(dataset.rows))


def check_reference(datasets: Sequence[Dataset], wanted: str | None) -> None:
    """Raise a ConfigError where no dataset has the wanted reference."""
    known = {name for dataset in datasets for label, runs in dataset.rows.items() for name in (label, runs[0].method)}
    if wanted is not None and wanted not in known:
        raise ConfigError(
            f"Expected --reference to be a method of these runs, but got '{wanted}'. {nearest(wanted, known)}"
        )


def values_of(dataset: Dataset, label: str, metric: Metric) -> dict[tuple[str, int], float]:
    """(held-out domain, seed) -> the metric in percent; runs on every domain count only where there is nothing else."""
    domains = dataset.held_out_only or dataset.held_out
    found = by_seed(dataset.rows[label], metric)
    return {(d, seed): 100 * shares[d] for d in domains for seed, shares in found.items() if d in shares}


def versus(ours: dict[tuple[str, int], float], theirs: dict[tuple[str, int], float]) -> Versus | None:
    """Ours minus theirs wherever both have a value, p uncorrected; None where they share no pair."""
    shared = [place for place in ours if place in theirs]
    groups: dict[str, list[float]] = {}
    for place in shared:
        groups.setdefault(place[0], []).append(ours[place] - theirs[place])
    difference = paired_difference(groups)
    return Versus(difference, difference.p, len({seed for _, seed in shared})) if difference else None


def all_pairs(dataset: Dataset, metric: Metric) -> dict[frozenset[str], float | None]:
    """Both labels -> Wilcoxon's p after Holm over all pairs of methods: for whoever picks the two by looking."""
    values = {label: values_of(dataset, label, metric) for label in dataset.rows}
    both = list(combinations(dataset.rows, 2))
    found = [
        wilcoxon([values[a][place] - values[b][place] for place in values[a] if place in values[b]]) for a, b in both
    ]
    return {frozenset(pair): p for pair, p in zip(both, holm(found), strict=True)}


def ranking(dataset: Dataset, metric: Metric) -> Ranking | None:
    """The ranking of two or more methods over their complete blocks; None where there is no such block."""
    labels = list(dataset.rows)
    values = {label: values_of(dataset, label, metric) for label in labels}
    places = list(dict.fromkeys(place for found in values.values() for place in found))
    table = np.array([[values[label].get(place, np.nan) for label in labels] for place in places])
    ranks: NDArray[np.float64] = block_ranks(table.reshape(-1, len(labels)), metric.higher_is_better)
    if len(labels) < 2 or not len(ranks):
        return None
    means = dict(zip(labels, ranks.mean(axis=0).tolist(), strict=True))
    return Ranking(means, len(ranks), friedman(ranks)[1], critical_difference(len(labels), len(ranks)))


def _comparison(dataset: Dataset, metric: Metric, reference: str) -> Comparison:
    group = detail_group(dataset)
    base = values_of(dataset, reference, metric)
    found = [None if label == reference else versus(values_of(dataset, label, metric), base) for label in dataset.rows]
    ranked = ranking(dataset, metric)
    means = ranked.mean_ranks if ranked else {}
    column = Column(group, metric)
    rows = tuple(
        Row(label, cell_of(dataset, label, column), one, means.get(label), printed_value(dataset, label, column))
        for label, one in zip(dataset.rows, _corrected(found), strict=True)
    )
    return Comparison(dataset.name, group, metric, reference, rows, ranked)


def _corrected(found: Sequence[Versus | None]) -> Iterator[Versus | None]:
    """The same with Holm's p over all that are there."""
    for one, p in zip(found, holm([one.p if one else None for one in found]), strict=True):
        yield replace(one, p=p) if one else None
