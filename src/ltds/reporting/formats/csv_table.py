"""The numbers as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io

from ltds.core.text import FORMULA_STARTS
from ltds.reporting.collection import Collection
from ltds.reporting.comparison import ComparisonRow, comparisons
from ltds.reporting.cost import cost_of
from ltds.reporting.glossary import METRICS
from ltds.reporting.paper.matching import printed_value
from ltds.reporting.result_table import Column, TableCell, cell_of, groups_of

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
SAMPLES = ("images", "images_kind", "images_half_width", "too_few_images", "open_classes")
COSTS = ("parameters", "seconds_per_step")
INFORMED = "knows_open_names"


def csv_table(collection: Collection, reference: str | None = None) -> str:
    """CSV with one metric per line, in percent, and the cost of the method at the end; a missing value is empty.

    The comparison with the reference is on the lines it belongs to: main metrics over all held-out domains. CSV has no
    comments, so the problems of the runs are not in it: the command line prints them, and `ltds.report` warns of them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*NAMES, *NUMBERS, *SAMPLES, *COMPARED, *COSTS, INFORMED])
    for dataset in collection.datasets:
        compared = {
            (row.label, table.group, table.metric.key): (table.reference, row)
            for table in comparisons(dataset, reference)
            for row in table.rows
        }
        for label, runs in dataset.rows.items():
            cost, informed = cost_of(runs), "yes" if any(run.knows_open_names for run in runs) else "no"
            for column in (Column(group, metric) for group in groups_of(dataset) for metric in METRICS.values()):
                cell = cell_of(dataset, label, column)
                names = (dataset.name, label, column.group, column.metric.key)
                numbers = (cell.mean, cell.std, cell.seeds, cell.low, cell.high, printed_value(dataset, label, column))
                against = _difference(*compared.get(names[1:], (None, None)))
                rest = map(_plain, (*_sample(cell), *against, cost.parameters, cost.seconds, informed))
                writer.writerow([*map(_csv_text, names), *map(_percent, numbers), *rest])
    return out.getvalue()


def _sample(cell: TableCell) -> tuple[str | float | None, ...]:
    """The test images behind the cell, see `sample_size`."""
    if cell.sample is None:
        return (None,) * len(SAMPLES)
    kind = cell.sample.kind or "known"
    few, classes = "yes" if cell.too_few else "no", cell.sample.open_classes or None
    return cell.sample.images, kind, cell.sample.half_width, few, classes


def _difference(reference: str | None, row: ComparisonRow | None) -> tuple[str | float | None, ...]:
    if reference is None or row is None:
        return (None,) * len(COMPARED)
    if row.difference is None:
        return (_csv_text(reference), *[None] * (len(COMPARED) - 2), row.rank)
    d = row.difference.paired
    return (_csv_text(reference), d.mean, d.low, d.high, row.difference.p, d.wins, d.ties, d.losses, row.rank)


def _percent(value: float | None) -> str:
    """Four decimals; counts unchanged."""
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _plain(value: str | float | None) -> str:
    """Six significant digits; counts and names unchanged."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _csv_text(name: str) -> str:
    """The name, with an apostrophe in front if a spreadsheet would treat it as a formula."""
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
