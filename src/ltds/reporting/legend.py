"""The sentences below the tables, and the tables of a dataset that every format prints."""

from __future__ import annotations

from collections.abc import Iterable

from ltds.evaluation.metrics import FEW_IMAGES
from ltds.reporting.collection import Collection
from ltds.reporting.comparison import comparisons
from ltds.reporting.comparison_table import ComparisonTable, comparison_table
from ltds.reporting.cost import HEADINGS, Cost, times_are_noise
from ltds.reporting.dataset import Dataset
from ltds.reporting.open_names import about_names
from ltds.reporting.result_table import MISSING, TOO_FEW, ResultTable, detail_table, main_table
from ltds.reporting.sample_size import WIDEST

SPREAD = "Mean ± sample standard deviation over seeds, in percent; averages use the seeds that have every domain."
RANKS = (
    "Best in bold, second underlined, if two or more methods have a value; values of one seed or of too few images are "
    "never marked."
)
ABOUT_FEW_IMAGES = (
    f"{TOO_FEW} too few images to trust the number: fewer than {FEW_IMAGES}, or chance alone moves it by more than "
    f"{WIDEST:.0f} points (95 % interval)."
)
IMAGES = (
    "Test images: how many different ones each number rests on; an average over domains counts each once. H, AUROC and "
    "OSCR compare known with open images and rest on the smaller kind."
)
IMAGES_ROW = "Test images"
ONE_SEED = "† one seed: its spread is unknown."
NO_VALUE = f"{MISSING} no value."
ORACLE = "H oracle: the best of ten thresholds, chosen on the test labels."
COST = (
    "Cost: parameters of all networks, and the median time of a training step without loading, validation, and what "
    "methods like boda compute from all images between steps; times depend on the machine and on its load."
)
NOISE = "The step times overlap (from the first to the third quartile of the steps): they show no difference."


def legend(tables: Iterable[ResultTable]) -> list[str]:
    """The sentences that these tables need below them."""
    shown = list(tables)
    cells = [cell for table in shown for _, row in table.rows for cell in row]
    costs = [cost for table in shown for cost in table.costs]
    informed = [label for table in shown for label in table.informed]
    has_oracle = any(column.metric.choice == "h_oracle" for table in shown for column in table.columns)
    sentences = (
        (SPREAD, True),
        (RANKS, any(cell.mark for cell in cells)),
        (ONE_SEED, any(cell.seeds == 1 for cell in cells)),
        (ABOUT_FEW_IMAGES, any(cell.too_few for cell in cells)),
        (NO_VALUE, any(cell.mean is None for cell in cells) or any(_missing_cost(table) for table in shown)),
        (IMAGES, any(any(table.images) for table in shown)),
        (ORACLE, has_oracle),
        (about_names(informed), bool(informed)),
        (COST, bool(costs)),
        (NOISE, any(times_are_noise(table.costs) for table in shown)),
    )
    return [sentence for sentence, needed in sentences if needed]


def all_tables(collection: Collection) -> list[ResultTable]:
    """The main table of each dataset, then its detail table."""
    return [make(dataset) for dataset in collection.datasets for make in (main_table, detail_table)]


def comparison_tables(dataset: Dataset, reference: str | None = None) -> list[ComparisonTable]:
    """The comparisons of a dataset with a reference, one for each main metric; none if there is one method."""
    return [comparison_table(comparison) for comparison in comparisons(dataset, reference)]


def cost_headings(table: ResultTable) -> tuple[str, ...]:
    """The headings of the cost, without those of which no row has a value."""
    return tuple(HEADINGS[i] for i in _cost_columns(table.costs))


def cost_texts(table: ResultTable, missing: str) -> list[tuple[str, ...]]:
    """The last cells of each row, under `cost_headings`; empty if the table has no costs."""
    shown = _cost_columns(table.costs)
    return [tuple(cost.texts(missing)[i] for i in shown) for cost in table.costs] or [() for _ in table.rows]


def _cost_columns(costs: Iterable[Cost]) -> list[int]:
    values = [(cost.parameters, cost.seconds) for cost in costs]
    return [i for i in range(len(HEADINGS)) if any(row[i] is not None for row in values)]


def _missing_cost(table: ResultTable) -> bool:
    return any((c.parameters, c.seconds)[i] is None for c in table.costs for i in _cost_columns(table.costs))
