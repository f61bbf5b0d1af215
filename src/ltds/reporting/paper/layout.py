"""The paper's tables as text for a terminal, or as markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, fields

from ltds.core.registry import find
from ltds.reporting.paper.tables import (
    AVERAGE,
    NOTES,
    RESULTS,
    SETTINGS,
    PublishedNumber,
    PublishedSetting,
    averages,
    rows,
    settings,
)
from ltds.reporting.result_table import MISSING

TABLES = tuple(sorted(RESULTS.keys() | SETTINGS.keys()))


@dataclass(frozen=True)
class PaperLayout:
    """A table arranged as in the paper. `groups`: (heading over columns, names of those columns)."""

    title: str
    corner: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    notes: tuple[str, ...]


def layout(table: str) -> PaperLayout:
    """The table of this number: 1 to 4, S1 to S5."""
    find("table of the paper", table, dict.fromkeys(TABLES))
    return _results(table) if table in RESULTS else _settings(table)


def _results(table: str) -> PaperLayout:
    numbers = rows(table)
    metrics = tuple(dict.fromkeys(number.metric for number in numbers))
    domains = tuple(dict.fromkeys(number.held_out for number in numbers))
    value = {(n.label, n.held_out, n.metric): n.value for n in numbers}
    for label, means in averages(table).items():
        value |= {(label, AVERAGE, metric): mean for metric, mean in means.items()}
    over = tuple(dict.fromkeys((*domains, AVERAGE)))
    digits = {name: 1 if name in domains else 2 for name in over}
    names = {n.label: (n.group, n.label, n.preset) for n in numbers}
    lines = tuple(
        (names[label], tuple(_number(value.get((label, p, m)), digits[p]) for p in over for m in metrics))
        for label in names
    )
    title = f"Table {table}: {RESULTS[table][1]}, in percent"
    return PaperLayout(title, ("", "Method", "Preset"), tuple((name, metrics) for name in over), lines, NOTES[table])


def _settings(table: str) -> PaperLayout:
    entries = settings(table)
    columns = tuple(dict.fromkeys(entry.column for entry in entries))
    ours = {entry.row: entry.ours for entry in entries}
    value = {(entry.row, entry.column): entry.value for entry in entries}
    lines = tuple(((row, ours[row]), tuple(value[row, column] or MISSING for column in columns)) for row in ours)
    return PaperLayout(
        f"Table {table}: {SETTINGS[table]}", ("", "Here" if any(ours.values()) else ""), (("", columns),), lines, ()
    )


def _number(value: float | None, digits: int) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def plain_text(table: str, width: int) -> str:
    """Plain lines, if possible no wider than `width`: groups of columns that do not fit are printed below."""
    shown = layout(table)
    corner = _aligned([shown.corner, *(names for names, _ in shown.rows)], str.ljust)
    blocks, start = [], 0
    column_groups: list[list[str]] = []
    for heading, columns in shown.groups:
        body = _aligned([columns, *(cells[start : start + len(columns)] for _, cells in shown.rows)], str.rjust)
        start += len(columns)
        wide = max(len(body[0]), len(heading))
        column_groups.append([heading.center(wide), *(line.rjust(wide) for line in body)])
    while column_groups:
        block, used = [["".ljust(len(corner[0])), *corner]], len(corner[0])
        while column_groups and (len(block) == 1 or used + 3 + len(column_groups[0][0]) <= width):
            used += 3 + len(column_groups[0][0])
            block.append(column_groups.pop(0))
        blocks.append("\n".join("   ".join(line).rstrip() for line in zip(*block, strict=True)).strip("\n"))
    return "\n\n".join([shown.title, *blocks, *(["\n".join(shown.notes)] if shown.notes else [])])


def _aligned(lines: Sequence[Sequence[str]], justify: Callable[[str, int], str]) -> list[str]:
    """The lines with every column as wide as its widest entry, without empty columns."""
    columns = [column for column in zip(*lines, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in columns]
    return ["  ".join(justify(c, w) for c, w in zip(line, widths, strict=True)) for line in zip(*columns, strict=True)]


def markdown(table: str) -> str:
    """A GitHub markdown table under a heading, with its notes."""
    shown = layout(table)
    names = [f"{heading} {column}".strip() for heading, columns in shown.groups for column in columns]
    lines = [[*shown.corner, *names], [*[":--"] * len(shown.corner), *["--:"] * len(names)]]
    lines += [[*corner, *cells] for corner, cells in shown.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join(
        [f"### {shown.title}", body, *(["\n".join(f"- {n}" for n in shown.notes)] if shown.notes else [])]
    )


def csv_text(table: str) -> str:
    """The printed numbers as the package stores them, one per line."""
    entries = _entries(table)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.name for field in fields(entries[0]))
    writer.writerows(astuple(entry) for entry in entries)
    return out.getvalue().rstrip("\n")


def paper_json(table: str) -> str:
    """The printed numbers as a JSON list, one object per number; null is a dash."""
    return json.dumps([asdict(entry) for entry in _entries(table)], indent=1)


def _entries(table: str) -> tuple[PublishedNumber, ...] | tuple[PublishedSetting, ...]:
    find("table of the paper", table, dict.fromkeys(TABLES))
    return rows(table) if table in RESULTS else settings(table)
