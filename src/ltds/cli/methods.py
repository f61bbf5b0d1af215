"""`ltds methods`: list the methods, explain one of them, or print the tables of the paper."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ltds.core.errors import ConfigError

if TYPE_CHECKING:
    from ltds.methods.entry import MethodEntry

LABEL = 11  # width of the column of labels in an explanation


class PaperFormat(StrEnum):
    """The format of the paper's tables."""

    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def methods(
    name: Annotated[
        str | None, typer.Argument(help="A method to explain; with --paper, one of its tables: 1 to 4, S1 to S5.")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Print the paper's tables, as published.")] = False,
    format: Annotated[PaperFormat, typer.Option(help="How to print the paper's tables.")] = PaperFormat.TEXT,
) -> None:
    """List the methods, explain one with all its settings, or print the tables of the paper.

    Examples: ltds methods; ltds methods bsce; ltds methods --paper 2

    Train one with: ltds train --method NAME
    """
    if paper:
        _print_paper(name, format)
    elif format != PaperFormat.TEXT:
        raise ConfigError(f"Expected --format {format} together with --paper, but got it alone. Add --paper.")
    elif name is None:
        _list()
    else:
        _explain(name)


def _list() -> None:
    """Every method in one line, under the heading of its group."""
    from ltds.methods.entry import GROUPS
    from ltds.methods.registry import METHODS

    width = max(map(len, METHODS))
    for group in dict.fromkeys((*GROUPS, *(entry.group for entry in METHODS.values()))):
        print(group)
        for name, entry in METHODS.items():
            if entry.group == group:
                print(f"  {name:<{width}}  {entry.summary}")
    print("\nMore about one: ltds methods NAME. The paper's numbers: ltds methods --paper")


def _explain(name: str) -> None:
    from ltds.core.config import parse
    from ltds.methods.registry import find_method

    entry = find_method(name)
    console = _console()
    console.print(Text(f"{name}: {entry.summary}"), style="bold", soft_wrap=True)
    for label, words in _facts(name, entry):
        _say(console, label, words)
    values = parse(entry.method.Config, entry.settings)
    _settings(console, entry, values)
    _say(console, "Train it", f"ltds train DATA --method {name}")


def _facts(name: str, entry: MethodEntry) -> Iterator[tuple[str, str]]:
    """The lines above the settings: a label and a sentence."""
    kind = entry.method
    yield "Class", f"{kind.__name__} in {kind.__module__}: {' '.join((kind.__doc__ or '').split())}"
    if entry.networks:
        yield "Cost", _cost(entry)
    for citation in entry.citations:
        yield "From", citation
    if entry.page:
        yield "Page", f"docs/methods/{entry.page}.md"
    for sentence in _published(name):
        yield "Paper", sentence


def _cost(entry: MethodEntry) -> str:
    count = "1 network" if entry.networks == "1" else f"{entry.networks} networks"
    passes = f"a step takes {entry.passes} batches of one domain through a backbone, for K source domains"
    formulas = f"{count}; {passes}.".replace("**2", "²").replace(" * ", " ")
    return " ".join(filter(None, [formulas, entry.remark]))


def _published(name: str) -> Iterator[str]:
    """The averages in the paper for this method, a sentence for each row of its tables."""
    from ltds.reporting.paper.tables import RESULTS, averages, paper_preset, rows

    for table, (_, title) in RESULTS.items():
        for label in dict.fromkeys(number.label for number in rows(table) if number.preset == paper_preset(name)):
            means = "  ".join(f"{metric} {value}" for metric, value in averages(table)[label].items())
            yield f"table {table}, {title}, {label}: on average {means}"


def _settings(console: Console, entry: MethodEntry, values: object) -> None:
    """The table of settings: name, type, default, the value of this method where it differs, and meaning."""
    from pydantic import BaseModel

    from ltds.cli.explanation import explanations, setting_lines

    assert isinstance(values, BaseModel)
    lines = list(setting_lines(entry.method.Config(), values, "method."))
    header = ["setting", "type", "default", f"in {entry.name}", "meaning"]
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for title in header:
        table.add_column(title, overflow="fold")
    for line in lines:
        cells = (line.name, line.kind, line.default, line.here, line.description)
        table.add_row(*map(escape, cells), style="bold" if line.here else None)
    console.print()
    console.print(table)
    console.print()
    for group, words in explanations(values):
        _say(console, group or "Settings", words)


def _say(console: Console, label: str, words: str) -> None:
    """A label in bold on the left, its text wrapped on the right."""
    lines = textwrap.wrap(words, max(20, console.width - LABEL), break_long_words=False, break_on_hyphens=False)
    console.print(Text.assemble((f"{label} ".ljust(LABEL), "bold"), f"\n{' ' * LABEL}".join(lines)), soft_wrap=True)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(120, console.width))


def _print_paper(table: str | None, format: PaperFormat) -> None:
    from ltds.reporting.paper import layout

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    text: dict[PaperFormat, Callable[[str], str]] = {
        PaperFormat.TEXT: lambda number: layout.plain_text(number, width),
        PaperFormat.MARKDOWN: layout.markdown,
        PaperFormat.CSV: layout.csv_text,
        PaperFormat.JSON: layout.paper_json,
    }
    if table is None and format in (PaperFormat.CSV, PaperFormat.JSON):
        raise ConfigError(
            f"Expected the number of one table for --format {format}, but got none. "
            f"Type 'ltds methods --paper 2 --format {format}'; tables: {', '.join(layout.TABLES)}."
        )
    print("\n\n".join(text[format](number) for number in ([table] if table else layout.TABLES)))
