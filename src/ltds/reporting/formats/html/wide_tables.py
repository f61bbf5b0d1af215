"""Tables that fit on a screen: a wide one is cut into several, none of which has to be scrolled sideways."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ltds.reporting.class_accuracy import class_accuracy, class_test_images, head_to_tail
from ltds.reporting.dataset import Dataset
from ltds.reporting.domain_accuracy import DomainRow, domain_rows
from ltds.reporting.glossary import Metric
from ltds.reporting.result_table import ResultTable, TableCell
from ltds.reporting.sample_size import Sample, half_width

Part = TypeVar("Part")
COLUMNS = 9  # of a table that stays whole
GROUPS = 7  # of a part: with mean, spread and interval, and the cost, they fit on 1280 pixels
METHODS = 6  # of a part of a table with a column for each method


@dataclass(frozen=True)
class MetricRow:
    """One metric over some methods, with the images that it rests on."""

    metric: Metric
    images: str
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class ClassRow:
    """One class: mean training images, test images, and accuracy for each of some methods."""

    name: str
    images: float
    test_images: int | None
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class MethodColumns:
    """Part of a table that has a column for each method."""

    methods: tuple[str, ...]
    metrics: tuple[MetricRow, ...] = ()
    domains: tuple[DomainRow, ...] = ()
    classes: tuple[ClassRow, ...] = ()


def in_parts(values: Sequence[Part], size: int) -> Iterator[Sequence[Part]]:
    """The values, at most `size` at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def parts(table: ResultTable) -> Iterator[tuple[ResultTable, str]]:
    """The table, or if it is wide a part for each metric, with a caption."""
    if len(table.columns) <= COLUMNS:
        yield table, "Results on each held-out domain"
        return
    first = True
    for metric in dict.fromkeys(column.metric for column in table.columns):
        places = [i for i, column in enumerate(table.columns) if column.metric == metric]
        for chosen in in_parts(places, GROUPS):
            rows = tuple((label, tuple(cells[i] for i in chosen)) for label, cells in table.rows)
            columns = tuple(table.columns[i] for i in chosen)
            caption = f"{metric.name} on each held-out domain"
            yield replace(table, columns=columns, rows=rows, costs=table.costs if first else ()), caption
            first = False


def by_metric(table: ResultTable) -> Iterator[MethodColumns]:
    """The table with a row for each metric and a column for each method, some methods at a time."""
    for chosen in in_parts(range(len(table.rows)), METHODS):
        labels = tuple(table.rows[i][0] for i in chosen)
        rows = tuple(
            MetricRow(column.metric, table.images[c], tuple(table.rows[i][1][c] for i in chosen))
            for c, column in enumerate(table.columns)
        )
        yield MethodColumns(labels, metrics=rows)


def by_domain(dataset: Dataset, labels: Sequence[str]) -> Iterator[MethodColumns]:
    """Accuracy in each domain, for some methods at a time; nothing if no run recorded its test images."""
    for chosen in in_parts(labels, METHODS // 2):
        rows = tuple(domain_rows(dataset, chosen))
        if rows:
            yield MethodColumns(tuple(chosen), domains=rows)


def by_class(dataset: Dataset) -> Iterator[MethodColumns]:
    """Accuracy of each class, from head to tail, for some methods at a time, over held-out domains that all have."""
    dataset = dataset.comparable()
    images, accuracy, trained = class_accuracy(dataset)
    tested = class_test_images(dataset)
    methods = list(dataset.rows)
    for chosen in in_parts(range(len(methods)), METHODS):
        rows = []
        for i in head_to_tail(images):
            test = int(tested[trained[i]]) if tested is not None else None
            cells = tuple(_class_cell(float(accuracy[m, i]), test) for m in chosen)
            rows.append(ClassRow(dataset.classes[trained[i]], float(images[i]), test, cells))
        if rows:
            yield MethodColumns(tuple(methods[m] for m in chosen), classes=tuple(rows))


def _class_cell(share: float, images: int | None) -> TableCell:
    if math.isnan(share):
        return TableCell(None, None, 0)
    sample = Sample(images, half_width(100 * share, images)) if images else None
    return TableCell(100 * share, None, 1, sample=sample)
