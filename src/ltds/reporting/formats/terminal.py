"""The tables as plain rows that are narrow enough for a terminal."""

from __future__ import annotations

from ltds.reporting.collection import Collection
from ltds.reporting.cost import HEADINGS, cost_of
from ltds.reporting.glossary import MAIN
from ltds.reporting.result_table import MISSING, main_table


def terminal_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header, and one row for each method and held-out domain."""
    many = len(collection.datasets) > 1
    header = [*(["Dataset"] if many else []), "Method", "Held out", *(metric.heading for metric in MAIN), "Seeds"]
    rows = []
    for dataset in collection.datasets:
        table = main_table(dataset)
        for label, cells in table.rows:
            for start in range(0, len(cells), len(MAIN)):
                group = cells[start : start + len(MAIN)]
                names = [*([dataset.name] if many else []), label, table.columns[start].group]
                rows.append([*names, *(cell.text() for cell in group), str(max(cell.seeds for cell in group))])
    return header, rows


def cost_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header, and one row with the cost of each method."""
    many = len(collection.datasets) > 1
    rows = [
        [*([dataset.name] if many else []), label, *cost_of(runs).texts(MISSING)]
        for dataset in collection.datasets
        for label, runs in dataset.rows.items()
    ]
    return [*(["Dataset"] if many else []), "Method", *HEADINGS], rows
