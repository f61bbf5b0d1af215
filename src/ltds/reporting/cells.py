"""Table: means over seeds with their ranks, before any format."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ltds.evaluation.statistics import summary
from ltds.reporting.cost import Cost, cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import DETAIL, MAIN, Metric
from ltds.reporting.run import Run

AVERAGE = "Average"
MISSING = "\u2013"  # an en dash
Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Cell:
    """Mean, sample standard deviation and 95 % interval over `seeds` seeds, in percent; None is no number."""

    mean: float | None
    std: float | None
    seeds: int
    mark: Mark = ""
    low: float | None = None
    high: float | None = None

    def text(self, plus_minus: str = " ± ", one_seed: str = "†", missing: str = MISSING) -> str:
        """The cell with one decimal, as every format prints it; a lone seed is marked."""
        if self.mean is None:
            return missing
        return f"{self.mean:.1f}{one_seed}" if self.std is None else f"{self.mean:.1f}{plus_minus}{self.std:.1f}"


@dataclass(frozen=True)
class Column:
    """A metric, over one held-out domain or over the average of all."""

    group: str
    metric: Metric


@dataclass(frozen=True)
class Table:
    """Rows of cells, one for each column; `costs`, one for each row, stand behind them or not at all."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    costs: tuple[Cost, ...] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The columns' groups with how many columns each spans."""
        names = dict.fromkeys(column.group for column in self.columns)
        return [(name, sum(column.group == name for column in self.columns)) for name in names]

    @property
    def has_spread(self) -> bool:
        return any(cell.std is not None for _, cells in self.rows for cell in cells)


def main_table(dataset: Dataset) -> Table:
    """The paper's table: Acc-U, Acc and H (oracle) of each held-out domain, then their averages; then the cost."""
    averaged = (AVERAGE,) if len(dataset.held_out_only) > 1 else ()
    columns = [Column(group, metric) for group in (*dataset.held_out, *averaged) for metric in MAIN]
    costs = tuple(cost_of(runs) for runs in dataset.rows.values())
    return replace(_table(dataset, dataset.name, columns), costs=costs)


def detail_table(dataset: Dataset) -> Table:
    """All other metrics, averaged over the held-out domains."""
    group = detail_group(dataset)
    return _table(dataset, f"{dataset.name}: details", [Column(group, metric) for metric in DETAIL])


def detail_group(dataset: Dataset) -> str:
    """What a method's single number is taken over: the average, or the only domain there is."""
    return AVERAGE if len(dataset.held_out_only) > 1 else (dataset.held_out_only or dataset.held_out)[0]


def cell_of(dataset: Dataset, label: str, column: Column) -> Cell:
    """The cell of one row. An average takes only the seeds that have every held-out domain."""
    values = by_seed(dataset.rows[label], column.metric)
    if column.group != AVERAGE:
        return cell(seeds[column.group] for seeds in values.values() if column.group in seeds)
    needed = dataset.held_out_only
    complete = [seeds for seeds in values.values() if all(domain in seeds for domain in needed)]
    return cell(statistics.fmean(seeds[domain] for domain in needed) for seeds in complete)


def by_seed(runs: Iterable[Run], metric: Metric) -> dict[int, dict[str, float]]:
    """Seed -> held-out domain -> the metric, a share; undefined ones are left out."""
    values: dict[int, dict[str, float]] = {}
    for run in runs:
        value = run.metrics.summary.get(metric.key)
        if value is not None:
            values.setdefault(run.seed, {})[run.held_out] = value
    return values


def cell(shares: Iterable[float]) -> Cell:
    """The cell of these values, one for each seed."""
    found = summary([100 * share for share in shares])
    return Cell(found.mean, found.sd, found.n, low=found.low, high=found.high) if found else Cell(None, None, 0)


def ranked(cells: Sequence[Cell], higher_is_better: bool) -> list[Cell]:
    """The cells of a column, marked where two or more have a number.

    Equal as printed is equal. A one-seed value takes its rank but never its mark, so no luck is printed in bold.
    """
    means = [round(c.mean, 1) for c in cells if c.mean is not None]
    if len(means) < 2:
        return list(cells)
    order = sorted(set(means), reverse=higher_is_better)
    marks: dict[float, Mark] = {order[0]: "best"}
    if means.count(order[0]) == 1 and len(order) > 1:
        marks[order[1]] = "second"
    return [
        replace(c, mark=marks.get(round(c.mean, 1), "")) if c.mean is not None and c.seeds > 1 else c for c in cells
    ]


def _table(dataset: Dataset, title: str, columns: Sequence[Column]) -> Table:
    by_column = [
        ranked([cell_of(dataset, label, column) for label in dataset.rows], column.metric.higher_is_better)
        for column in columns
    ]
    rows = tuple((label, tuple(column[i] for column in by_column)) for i, label in enumerate(dataset.rows))
    return Table(title, tuple(columns), rows)
