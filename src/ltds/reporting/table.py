"""The tables as text: markdown and rows for a terminal, and the sentences below them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ltds.reporting.cells import MISSING, Cell, Table, detail_table, main_table
from ltds.reporting.collect import Collection
from ltds.reporting.comparison import comparisons
from ltds.reporting.comparison_table import Sheet, sentences, sheet
from ltds.reporting.cost import HEADINGS, cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import MAIN

SPREAD = "Mean ± sample standard deviation over seeds, in percent; averages take the seeds that have every domain."
RANKS = "Best in bold, second underlined, where two or more methods have a value; one-seed values are never marked."
ONE_SEED = "† one seed: its spread is unknown."
NO_VALUE = f"{MISSING} no value."
ORACLE = "H oracle picks its threshold on the test labels: an upper limit."
COST = (
    "Cost: parameters of all networks, and the median time of a training step without loading and validation; times "
    "depend on the machine and on what else ran on it."
)


def legend(tables: Iterable[Table]) -> list[str]:
    """The sentences that these tables need below them."""
    shown = list(tables)
    cells = [cell for table in shown for _, row in table.rows for cell in row]
    costs = [cost for table in shown for cost in table.costs]
    has_oracle = any(column.metric.choice == "h_oracle" for table in shown for column in table.columns)
    wanted = (
        (SPREAD, True),
        (RANKS, any(cell.mark for cell in cells)),
        (ONE_SEED, any(cell.seeds == 1 for cell in cells)),
        (NO_VALUE, any(cell.mean is None for cell in cells) or any(None in (c.parameters, c.seconds) for c in costs)),
        (ORACLE, has_oracle),
        (COST, bool(costs)),
    )
    return [sentence for sentence, needed in wanted if needed]


def tables_of(collection: Collection) -> list[Table]:
    """Each dataset's main table, then its detail table."""
    return [make(dataset) for dataset in collection.datasets for make in (main_table, detail_table)]


def sheets_of(dataset: Dataset, reference: str | None = None) -> list[Sheet]:
    """The dataset's comparisons with a reference, one for each main metric; none where there is one method."""
    return [sheet(table) for table in comparisons(dataset, reference)]


def markdown_table(collection: Collection, reference: str | None = None) -> str:
    """GitHub markdown: for each dataset the main table, its comparisons and the detail table, then the legend."""
    blocks: list[str] = []
    tables: list[Table] = []
    sheets: list[Sheet] = []
    for dataset in collection.datasets:
        main, detail, compared = main_table(dataset), detail_table(dataset), sheets_of(dataset, reference)
        blocks += ["\n".join(lines) for lines in (_markdown(main), *map(_markdown_sheet, compared), _markdown(detail))]
        tables += [main, detail]
        sheets += compared
    below = [*legend(tables), *sentences(sheets)]
    return "\n\n".join([*blocks, "\n".join(f"- {markdown_text(sentence)}" for sentence in below)]) + "\n"


def terminal_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header and rows narrow enough for a terminal: one row for each method and held-out domain. Plain text."""
    many = len(collection.datasets) > 1
    header = [*(["Dataset"] if many else []), "Method", "Held out", *(metric.heading for metric in MAIN), "Seeds"]
    rows = []
    for dataset in collection.datasets:
        table = main_table(dataset)
        for label, cells in table.rows:
            for start in range(0, len(cells), len(MAIN)):
                part = cells[start : start + len(MAIN)]
                names = [*([dataset.name] if many else []), label, table.columns[start].group]
                rows.append([*names, *(cell.text() for cell in part), str(max(cell.seeds for cell in part))])
    return header, rows


def cost_rows(collection: Collection) -> tuple[list[str], list[list[str]]]:
    """A header and rows for a terminal: one row for each method, with its cost. Plain text."""
    many = len(collection.datasets) > 1
    rows = [
        [*([dataset.name] if many else []), label, *cost_of(runs).texts(MISSING)]
        for dataset in collection.datasets
        for label, runs in dataset.rows.items()
    ]
    return [*(["Dataset"] if many else []), "Method", *HEADINGS], rows


def _markdown(table: Table) -> list[str]:
    grouped = len(table.groups) > 1
    names = [
        f"{markdown_text(column.group)} {column.metric.heading}" if grouped else column.metric.heading
        for column in table.columns
    ]
    names += HEADINGS if table.costs else ()
    over = "" if grouped else f" ({markdown_text(table.groups[0][0])})"
    lines = [f"## {markdown_text(table.title)}{over}", "", _line(["Method", *names])]
    lines.append(_line([":--", *["--:"] * len(names)]))
    costs = cost_texts(table, MISSING)
    return lines + [
        _line([markdown_text(label), *map(_markdown_cell, cells), *cost])
        for (label, cells), cost in zip(table.rows, costs, strict=True)
    ]


def cost_texts(table: Table, missing: str) -> list[tuple[str, ...]]:
    """The last cells of each row; none where the table has no costs."""
    return [cost.texts(missing) for cost in table.costs] or [() for _ in table.rows]


def _markdown_sheet(table: Sheet) -> list[str]:
    lines = [f"## {markdown_text(table.title)}", "", _line(["Method", *map(markdown_text, table.headings)])]
    lines.append(_line([":--", *["--:"] * len(table.headings)]))
    return lines + [_line([markdown_text(label), *map(markdown_text, fields)]) for label, fields in table.rows]


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"


def _markdown_cell(cell: Cell) -> str:
    return {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}[cell.mark].format(cell.text())


def markdown_text(name: str) -> str:
    """The name with everything escaped that markdown or the HTML in it would read as markup."""
    entities = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", entities).split())
