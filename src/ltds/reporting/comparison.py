"""Comparison: each method against a reference, over pairs of runs with the same held-out domain and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ltds.core.errors import ConfigError, did_you_mean
from ltds.evaluation.significance import holm
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import MAIN, Metric
from ltds.reporting.open_names import informed_rows
from ltds.reporting.paired_runs import MethodDifference, method_difference, values_of
from ltds.reporting.paper.matching import printed_value
from ltds.reporting.ranking import Ranking, ranking
from ltds.reporting.result_table import Column, TableCell, cell_of, detail_group

BASELINE = "agg"


@dataclass(frozen=True)
class ComparisonRow:
    """A method: its value, its difference to the reference (None for itself), its mean rank, and the paper's value."""

    label: str
    cell: TableCell
    difference: MethodDifference | None
    rank: float | None
    printed: float | None


@dataclass(frozen=True)
class Comparison:
    """All methods in one metric over `group`, compared with `reference`.

    `informed`: labels of the rows whose method knows the names of the open classes.
    """

    dataset: str
    group: str
    metric: Metric
    reference: str
    rows: tuple[ComparisonRow, ...]
    ranking: Ranking | None
    informed: tuple[str, ...] = ()


@lru_cache(maxsize=64)
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
            f"Expected the reference to be a method of these runs, but got '{wanted}'. {did_you_mean(wanted, known)}",
            arguments=["reference"],
        )


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
    return Comparison(dataset.name, group, metric, reference, rows, ranked, informed_rows(dataset))


def _corrected(differences: Sequence[MethodDifference | None]) -> Iterator[MethodDifference | None]:
    """The same, with p corrected by Holm's method over those that have one: those with enough seeds for a verdict."""
    for one, p in zip(differences, holm([one.p if one else None for one in differences]), strict=True):
        yield replace(one, p=p) if one else None
