"""The tables as plain rows that are narrow enough for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ltds.reporting.collection import Collection
from ltds.reporting.cost import HEADINGS, cost_of
from ltds.reporting.glossary import UNEVEN_MAIN, Metric
from ltds.reporting.legend import IMAGES_ROW
from ltds.reporting.result_table import MISSING, Column, ResultTable, main_table


def terminal_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header, one row for each method and held-out domain, and one with the test images behind each number."""
    many = len(collection.datasets) > 1
    tables = {dataset.name: main_table(dataset) for dataset in collection.datasets}
    used = {column.metric for table in tables.values() for column in table.columns}
    metrics = [metric for metric in UNEVEN_MAIN if metric in used]
    header = [*(["Dataset"] if many else []), "Method", "Held out", *(metric.heading for metric in metrics), "Seeds"]
    rows = []
    for name, table in tables.items():
        rows += [[*([name] if many else []), *row] for row in _rows(table, metrics)]
    return header, rows


def _rows(table: ResultTable, metrics: Sequence[Metric]) -> Iterator[list[str]]:
    places = {column: i for i, column in enumerate(table.columns)}
    groups = {group: [places.get(Column(group, metric)) for metric in metrics] for group, _ in table.groups}
    for label, cells in table.rows:
        for group, columns in groups.items():
            seeds = max(cells[i].seeds for i in columns if i is not None)
            yield [table.name(label), group, *(MISSING if i is None else cells[i].text() for i in columns), str(seeds)]
    for group, columns in groups.items() if any(table.images) else ():
        yield [IMAGES_ROW, group, *("" if i is None else table.images[i] for i in columns), ""]


def cost_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header, and one row with the cost of each method."""
    many = len(collection.datasets) > 1
    rows = [
        [*([dataset.name] if many else []), label, *cost_of(runs).texts(MISSING)]
        for dataset in collection.datasets
        for label, runs in dataset.rows.items()
    ]
    return [*(["Dataset"] if many else []), "Method", *HEADINGS], rows
