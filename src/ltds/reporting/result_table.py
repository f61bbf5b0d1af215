"""ResultTable: means over seeds with marks for best and second, independent of any format."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from ltds.evaluation.significance import summary
from ltds.reporting.cost import Cost, any_cost, cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import MAIN, METRICS, UNEVEN_MAIN, Metric
from ltds.reporting.open_names import informed_rows, marked
from ltds.reporting.run import Run, apart_from
from ltds.reporting.sample_size import Sample, is_uneven, over_domains, sample_of

AVERAGE = "Average"  # see `average_of`
MISSING = "\u2013"  # an en dash
TOO_FEW = "\u2021"  # a double dagger
Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class TableCell:
    """Mean, sample standard deviation and 95 % interval over `seeds` seeds, in percent; None: no value.

    `sample`: the test images behind it, if they are known.
    """

    mean: float | None
    std: float | None
    seeds: int
    mark: Mark = ""
    low: float | None = None
    high: float | None = None
    sample: Sample | None = None

    @property
    def too_few(self) -> bool:
        """Whether it has a value that rests on too few images."""
        return self.mean is not None and self.sample is not None and self.sample.too_few

    def text(self, plus_minus: str = " ± ", one_seed: str = "†", missing: str = MISSING, too_few: str = TOO_FEW) -> str:
        """The cell with one decimal, as every format prints it, with the marks of one seed and of too few images."""
        if self.mean is None:
            return missing
        mark = too_few if self.too_few else ""
        if self.std is None:
            return f"{self.mean:.1f}{one_seed}{mark}"
        return f"{self.mean:.1f}{plus_minus}{self.std:.1f}{mark}"


@dataclass(frozen=True)
class Column:
    """A metric, on one held-out domain or averaged over all of them."""

    group: str
    metric: Metric


@dataclass(frozen=True)
class ResultTable:
    """Rows of one cell per column. `costs`: one per row, printed after the cells, or empty.

    `informed`: labels of the rows whose method knows the names of the open classes.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    costs: tuple[Cost, ...] = ()
    informed: tuple[str, ...] = ()

    def name(self, label: str) -> str:
        """The label of a row, marked where its method knows the names of the open classes."""
        return marked(label, self.informed)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups of columns with the number of columns in each."""
        names = dict.fromkeys(column.group for column in self.columns)
        return [(name, sum(column.group == name for column in self.columns)) for name in names]

    @property
    def images(self) -> tuple[str, ...]:
        """The test images behind each column, the same for every row; a range if the rows differ."""
        return tuple(_images(cells[i].sample for _, cells in self.rows) for i in range(len(self.columns)))

    @property
    def has_spread(self) -> bool:
        return any(cell.std is not None for _, cells in self.rows for cell in cells)


@lru_cache(maxsize=64)
def main_metrics(dataset: Dataset) -> tuple[Metric, ...]:
    """The metrics of the paper's tables; where test images are uneven over classes, with the means over classes."""
    return UNEVEN_MAIN if is_uneven(run for runs in dataset.rows.values() for run in runs) else MAIN


def main_table(dataset: Dataset) -> ResultTable:
    """The paper's table: Acc-U, Acc and H (oracle) of each held-out domain, then their averages; then the cost."""
    columns = [Column(group, metric) for group in groups_of(dataset) for metric in main_metrics(dataset)]
    costs = tuple(cost_of(runs) for runs in dataset.rows.values())
    return replace(_table(dataset, dataset.name, columns), costs=costs if any(map(any_cost, costs)) else ())


def detail_table(dataset: Dataset) -> ResultTable:
    """All other metrics, averaged over the held-out domains."""
    group, shown = detail_group(dataset), main_metrics(dataset)
    columns = [Column(group, metric) for metric in METRICS.values() if metric not in shown]
    return _table(dataset, f"{dataset.name}: details", columns)


def average_of(dataset: Dataset) -> str:
    """What the average over the held-out domains is called: none of the domains has this name."""
    return apart_from(dataset.domains, AVERAGE)


def groups_of(dataset: Dataset) -> tuple[str, ...]:
    """The held-out domains, and the average if there are several."""
    return (*dataset.held_out, *([average_of(dataset)] if len(dataset.held_out_only) > 1 else []))


def detail_group(dataset: Dataset) -> str:
    """What a single number of a method refers to: the average, or the only domain."""
    return average_of(dataset) if len(dataset.held_out_only) > 1 else (dataset.held_out_only or dataset.held_out)[0]


@lru_cache(maxsize=8192)
def cell_of(dataset: Dataset, label: str, column: Column) -> TableCell:
    """The cell of one row. An average uses only seeds that have a run for every held-out domain."""
    values = by_seed(dataset.rows[label], column.metric)
    if column.group != average_of(dataset):
        made = cell(seeds[column.group] for seeds in values.values() if column.group in seeds)
        found = _sample(dataset.rows[label], column, made.mean)
        return replace(made, sample=found[1] if found else None)
    needed = dataset.held_out_only
    complete = [seeds for seeds in values.values() if all(domain in seeds for domain in needed)]
    made = cell(statistics.fmean(seeds[domain] for domain in needed) for seeds in complete)
    parts = [_sample(dataset.rows[label], replace(column, group=domain), made.mean) for domain in needed]
    known = [part for part in parts if part is not None]
    return replace(made, sample=over_domains(known, column.metric.key) if len(known) == len(needed) else None)


def _sample(runs: Iterable[Run], column: Column, percent: float | None) -> tuple[Run, Sample] | None:
    """The images behind a cell of one held-out domain, with a run: all seeds have the same, or the fewest count."""
    if percent is None:
        return None
    of_runs = ((run, sample_of(run, column.metric.key, percent)) for run in runs if run.held_out == column.group)
    return min(((run, found) for run, found in of_runs if found), key=lambda one: one[1].images, default=None)


def _images(samples: Iterable[Sample | None]) -> str:
    known = sorted({(sample.images, sample.text) for sample in samples if sample})
    return "" if not known else known[0][1] if len(known) == 1 else f"{known[0][0]:,} to {known[-1][1]}"


def by_seed(runs: Iterable[Run], metric: Metric) -> dict[int, dict[str, float]]:
    """Seed -> held-out domain -> the metric as a fraction; undefined values are left out."""
    values: dict[int, dict[str, float]] = {}
    for run in runs:
        value = run.metrics.summary.get(metric.key)
        if value is not None:
            values.setdefault(run.seed, {})[run.held_out] = value
    return values


def cell(fractions: Iterable[float]) -> TableCell:
    """The cell of these values, one per seed. Its interval ends where the metric does."""
    seeds = summary([100 * fraction for fraction in fractions])
    if seeds is None:
        return TableCell(None, None, 0)
    if seeds.low is None or seeds.high is None:
        return TableCell(seeds.mean, seeds.sd, seeds.n)
    return TableCell(seeds.mean, seeds.sd, seeds.n, low=max(0.0, seeds.low), high=min(100.0, seeds.high))


def ranked(cells: Sequence[TableCell], higher_is_better: bool) -> list[TableCell]:
    """The cells of a column, marked best and second if two or more have a value.

    Values that are printed the same count as equal. A value of one seed, or of too few images, can be the best, but it
    is never marked, because it may be luck.
    """
    means = [round(c.mean, 1) for c in cells if c.mean is not None]
    if len(means) < 2:
        return list(cells)
    order = sorted(set(means), reverse=higher_is_better)
    marks: dict[float, Mark] = {order[0]: "best"}
    if means.count(order[0]) == 1 and len(order) > 1:
        marks[order[1]] = "second"
    return [
        replace(c, mark=marks.get(round(c.mean, 1), "")) if c.mean is not None and c.seeds > 1 and not c.too_few else c
        for c in cells
    ]


def _table(dataset: Dataset, title: str, columns: Sequence[Column]) -> ResultTable:
    """The table without columns in which no row has a value."""
    made = {
        column: ranked([cell_of(dataset, label, column) for label in dataset.rows], column.metric.higher_is_better)
        for column in columns
    }
    filled = [column for column, cells in made.items() if any(cell.mean is not None for cell in cells)]
    shown = filled or list(columns[:1])
    rows = tuple((label, tuple(made[column][i] for column in shown)) for i, label in enumerate(dataset.rows))
    return ResultTable(title, tuple(shown), rows, informed=informed_rows(dataset))
