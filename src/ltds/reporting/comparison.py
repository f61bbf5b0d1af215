"""Comparison: each method against a reference, over pairs of runs with the same held-out domain and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ltds.core.errors import ConfigError, nearest
from ltds.evaluation.significance import (
    PairedDifference,
    block_ranks,
    critical_difference,
    friedman,
    holm,
    paired_difference,
    wilcoxon,
)
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import MAIN, Metric
from ltds.reporting.paper.matching import printed_value
from ltds.reporting.result_table import Column, TableCell, by_seed, cell_of, detail_group

ALPHA = 0.05
BASELINE = "agg"


@dataclass(frozen=True)
class MethodDifference:
    """One method minus another, in percentage points. `p` is corrected (Holm); `seeds`: how many the pairs have."""

    paired: PairedDifference
    p: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """What the pairs show. A difference needs both the test over pairs and the interval over domains and seeds."""
        low, high = self.paired.low, self.paired.high
        if self.seeds < 2 or low is None or high is None or self.p is None:
            return "one seed"
        if self.p <= ALPHA and (low > 0 or high < 0):
            return "better" if low > 0 else "worse"
        return "no difference shown"


@dataclass(frozen=True)
class ComparisonRow:
    """A method: its value, its difference to the reference (None for itself), its mean rank, and the paper's value."""

    label: str
    cell: TableCell
    difference: MethodDifference | None
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
    """All methods in one metric over `group`, compared with `reference`."""

    dataset: str
    group: str
    metric: Metric
    reference: str
    rows: tuple[ComparisonRow, ...]
    ranking: Ranking | None


def comparisons(dataset: Dataset, wanted: str | None = None) -> tuple[Comparison, ...]:
    """A comparison for each main metric, if some method shares more than one pair with the reference."""
    if len(dataset.rows) < 2:
        return ()
    reference = reference_of(dataset, wanted)
    made = (_comparison(dataset, metric, reference) for metric in MAIN)
    return tuple(
        table for table in made if any(row.difference and row.difference.paired.pairs > 1 for row in table.rows)
    )


def reference_of(dataset: Dataset, wanted: str | None = None) -> str:
    """The row to compare with: the wanted label or method, otherwise the baseline, otherwise the first row."""
    for name in (wanted, BASELINE):
        for label, runs in dataset.rows.items():
            if name in (label, runs[0].method):
                return label
    return next(iter(dataset.rows))


def check_reference(datasets: Sequence[Dataset], wanted: str | None) -> None:
    """Raise a ConfigError if no dataset has the wanted reference."""
    known = {name for dataset in datasets for label, runs in dataset.rows.items() for name in (label, runs[0].method)}
    if wanted is not None and wanted not in known:
        raise ConfigError(
            f"Expected the reference to be a method of these runs, but got '{wanted}'. {nearest(wanted, known)}",
            arguments=["reference"],
        )


def values_of(dataset: Dataset, label: str, metric: Metric) -> dict[tuple[str, int], float]:
    """(held-out domain, seed) -> the metric in percent; runs on all domains count only if there are no others."""
    domains = dataset.held_out_only or dataset.held_out
    values = by_seed(dataset.rows[label], metric)
    return {(d, seed): 100 * by_domain[d] for d in domains for seed, by_domain in values.items() if d in by_domain}


def method_difference(
    ours: dict[tuple[str, int], float], theirs: dict[tuple[str, int], float]
) -> MethodDifference | None:
    """Ours minus theirs over the pairs that both have, p uncorrected; None if they share none."""
    shared = [pair for pair in ours if pair in theirs]
    by_domain: dict[str, list[float]] = {}
    for pair in shared:
        by_domain.setdefault(pair[0], []).append(ours[pair] - theirs[pair])
    paired = paired_difference(by_domain)
    return MethodDifference(paired, paired.p, len({seed for _, seed in shared})) if paired else None


def all_pairs(dataset: Dataset, metric: Metric) -> dict[frozenset[str], float | None]:
    """Two labels -> Wilcoxon's p, corrected (Holm) over all pairs of methods.

    For comparisons of methods that were picked after looking at the results.
    """
    values = {label: values_of(dataset, label, metric) for label in dataset.rows}
    methods = list(combinations(dataset.rows, 2))
    p_values = [
        wilcoxon([values[a][pair] - values[b][pair] for pair in values[a] if pair in values[b]]) for a, b in methods
    ]
    return {frozenset(two): p for two, p in zip(methods, holm(p_values), strict=True)}


def ranking(dataset: Dataset, metric: Metric) -> Ranking | None:
    """The ranking of two or more methods over the pairs that all of them have; None if there is no such pair."""
    labels = list(dataset.rows)
    values = {label: values_of(dataset, label, metric) for label in labels}
    pairs = list(dict.fromkeys(pair for of_method in values.values() for pair in of_method))
    table = np.array([[values[label].get(pair, np.nan) for label in labels] for pair in pairs])
    ranks = block_ranks(table.reshape(-1, len(labels)), metric.higher_is_better)
    if len(labels) < 2 or not len(ranks):
        return None
    means = dict(zip(labels, ranks.mean(axis=0).tolist(), strict=True))
    return Ranking(means, len(ranks), friedman(ranks)[1], critical_difference(len(labels), len(ranks)))


def _comparison(dataset: Dataset, metric: Metric, reference: str) -> Comparison:
    group = detail_group(dataset)
    base = values_of(dataset, reference, metric)
    differences = [
        None if label == reference else method_difference(values_of(dataset, label, metric), base)
        for label in dataset.rows
    ]
    ranked = ranking(dataset, metric)
    means = ranked.mean_ranks if ranked else {}
    column = Column(group, metric)
    rows = tuple(
        ComparisonRow(
            label, cell_of(dataset, label, column), one, means.get(label), printed_value(dataset, label, column)
        )
        for label, one in zip(dataset.rows, _corrected(differences), strict=True)
    )
    return Comparison(dataset.name, group, metric, reference, rows, ranked)


def _corrected(differences: Sequence[MethodDifference | None]) -> Iterator[MethodDifference | None]:
    """The same, with p corrected by Holm's method over all of them."""
    for one, p in zip(differences, holm([one.p if one else None for one in differences]), strict=True):
        yield replace(one, p=p) if one else None
