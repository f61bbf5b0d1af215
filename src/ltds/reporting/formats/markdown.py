"""The tables as GitHub markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ltds.reporting.collection import Collection
from ltds.reporting.comparison_table import ComparisonTable, sentences
from ltds.reporting.legend import IMAGES_ROW, comparison_tables, cost_headings, cost_texts, legend
from ltds.reporting.result_table import MISSING, ResultTable, TableCell, detail_table, main_table

COMMENT = "<!-- written by ltds report -->"


def markdown_table(collection: Collection, reference: str | None = None) -> str:
    """For each dataset the main table, its comparisons and the detail table; then the legend, and the problems."""
    blocks: list[str] = []
    tables: list[ResultTable] = []
    compared: list[ComparisonTable] = []
    for dataset in collection.datasets:
        main, detail, comparisons = main_table(dataset), detail_table(dataset), comparison_tables(dataset, reference)
        blocks += ["\n".join(lines) for lines in (_results(main), *map(_comparison, comparisons), _results(detail))]
        tables += [main, detail]
        compared += comparisons
    below = dict.fromkeys([*legend(tables), *sentences(compared)])
    problems = ["## Problems", _list(collection.problems)] if collection.problems else []
    return "\n\n".join([COMMENT, *blocks, _list(below), *problems]) + "\n"


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {markdown_text(sentence)}" for sentence in sentences)


def _results(table: ResultTable) -> list[str]:
    grouped = len(table.groups) > 1
    names = [
        f"{markdown_text(column.group)} {column.metric.heading}" if grouped else column.metric.heading
        for column in table.columns
    ]
    names += cost_headings(table)
    over = "" if grouped else f" ({markdown_text(table.groups[0][0])})"
    lines = [f"## {markdown_text(table.title)}{over}", "", _line(["Method", *names])]
    lines.append(_line([":--", *["--:"] * len(names)]))
    costs = cost_texts(table, MISSING)
    lines += [
        _line([markdown_text(table.name(label)), *map(_cell, cells), *cost])
        for (label, cells), cost in zip(table.rows, costs, strict=True)
    ]
    images = [_line([f"*{IMAGES_ROW}*", *table.images, *[""] * len(cost_headings(table))])]
    return lines + (images if any(table.images) else [])


def _comparison(table: ComparisonTable) -> list[str]:
    lines = [f"## {markdown_text(table.title)}", "", _line(["Method", *map(markdown_text, table.headings)])]
    lines.append(_line([":--", *["--:"] * len(table.headings)]))
    return lines + [
        _line([markdown_text(table.name(label)), *map(markdown_text, fields)]) for label, fields in table.rows
    ]


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _cell(cell: TableCell) -> str:
    return {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}[cell.mark].format(cell.text())


def markdown_text(name: str) -> str:
    """The name with everything escaped that markdown, or HTML within it, would treat as markup."""
    entities = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", entities).split())
