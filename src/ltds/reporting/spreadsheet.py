"""The numbers as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io

from ltds.reporting.cells import AVERAGE, Column, cell_of
from ltds.reporting.collect import Collection
from ltds.reporting.comparison import Row, comparisons
from ltds.reporting.cost import cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS
from ltds.reporting.paper import printed_value

NAMES = ("dataset", "method", "held_out", "metric")
NUMBERS = ("mean_percent", "std_percent", "seeds", "low_percent", "high_percent", "printed_percent")
COMPARED = (
    "reference",
    "difference",
    "difference_low",
    "difference_high",
    "p_holm",
    "won",
    "tied",
    "lost",
    "mean_rank",
)
COSTS = ("parameters", "seconds_per_step")


def csv_table(collection: Collection, reference: str | None = None) -> str:
    """CSV with one metric a line, in percent, and the method's cost behind each; missing is empty.

    The comparison with the reference stands on the lines that it is about: main metrics, over all held-out domains.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*NAMES, *NUMBERS, *COMPARED, *COSTS])
    for dataset in collection.datasets:
        compared = {
            (row.label, table.group, table.metric.key): (table.reference, row)
            for table in comparisons(dataset, reference)
            for row in table.rows
        }
        for label, runs in dataset.rows.items():
            cost = cost_of(runs)
            for column in (Column(group, metric) for group in groups_of(dataset) for metric in METRICS.values()):
                cell = cell_of(dataset, label, column)
                names = (dataset.name, label, column.group, column.metric.key)
                numbers = (cell.mean, cell.std, cell.seeds, cell.low, cell.high, printed_value(dataset, label, column))
                versus = _versus(*compared.get(names[1:], (None, None)))
                rest = map(_plain, (*versus, cost.parameters, cost.seconds))
                writer.writerow([*map(_csv_text, names), *map(_percent, numbers), *rest])
    return out.getvalue()


def groups_of(dataset: Dataset) -> tuple[str, ...]:
    """The held-out domains, and the average where there are several."""
    return (*dataset.held_out, *([AVERAGE] if len(dataset.held_out_only) > 1 else []))


def _versus(reference: str | None, row: Row | None) -> tuple[str | float | None, ...]:
    if reference is None or row is None:
        return (None,) * len(COMPARED)
    if row.versus is None:
        return (_csv_text(reference), *[None] * (len(COMPARED) - 2), row.rank)
    d = row.versus.difference
    return (_csv_text(reference), d.mean, d.low, d.high, row.versus.p, d.wins, d.ties, d.losses, row.rank)


def _percent(value: float | None) -> str:
    """Four decimals; a count as it is."""
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _plain(value: str | float | None) -> str:
    """Six figures; counts and names as they are."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _csv_text(name: str) -> str:
    """The name, led by an apostrophe where a spreadsheet would take it for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
