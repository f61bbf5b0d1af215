"""The sentences below the tables, and the tables of a dataset that every format prints."""

from __future__ import annotations

from collections.abc import Iterable

from ltds.reporting.collection import Collection
from ltds.reporting.comparison import comparisons
from ltds.reporting.comparison_table import ComparisonTable, comparison_table
from ltds.reporting.dataset import Dataset
from ltds.reporting.result_table import MISSING, ResultTable, detail_table, main_table

SPREAD = "Mean ± sample standard deviation over seeds, in percent; averages use the seeds that have every domain."
RANKS = "Best in bold, second underlined, if two or more methods have a value; values of one seed are never marked."
ONE_SEED = "† one seed: its spread is unknown."
NO_VALUE = f"{MISSING} no value."
ORACLE = "H oracle: the best of ten thresholds, chosen on the test labels."
COST = (
    "Cost: parameters of all networks, and the median time of a training step without loading and validation; times "
    "depend on the machine and on its load."
)


def legend(tables: Iterable[ResultTable]) -> list[str]:
    """The sentences that these tables need below them."""
    shown = list(tables)
    cells = [cell for table in shown for _, row in table.rows for cell in row]
    costs = [cost for table in shown for cost in table.costs]
    has_oracle = any(column.metric.choice == "h_oracle" for table in shown for column in table.columns)
    sentences = (
        (SPREAD, True),
        (RANKS, any(cell.mark for cell in cells)),
        (ONE_SEED, any(cell.seeds == 1 for cell in cells)),
        (NO_VALUE, any(cell.mean is None for cell in cells) or any(None in (c.parameters, c.seconds) for c in costs)),
        (ORACLE, has_oracle),
        (COST, bool(costs)),
    )
    return [sentence for sentence, needed in sentences if needed]


def all_tables(collection: Collection) -> list[ResultTable]:
    """The main table of each dataset, then its detail table."""
    return [make(dataset) for dataset in collection.datasets for make in (main_table, detail_table)]


def comparison_tables(dataset: Dataset, reference: str | None = None) -> list[ComparisonTable]:
    """The comparisons of a dataset with a reference, one for each main metric; none if there is one method."""
    return [comparison_table(comparison) for comparison in comparisons(dataset, reference)]


def cost_texts(table: ResultTable, missing: str) -> list[tuple[str, ...]]:
    """The last cells of each row; empty if the table has no costs."""
    return [cost.texts(missing) for cost in table.costs] or [() for _ in table.rows]
