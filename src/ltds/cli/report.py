"""`ltds report`: tables and a page from run directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltds.cli.screen import SCREEN
from ltds.core.errors import ConfigError
from ltds.core.files import write_text

if TYPE_CHECKING:
    from ltds.report.collect import Collection


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or folders that hold some.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(help="File to write: .html (page), .md, .csv or .tex (table). May be repeated."),
    ] = None,
) -> None:
    """Compare runs: a table on the screen, and files in the formats their endings name.

    Example: ltds report runs --out report.html --out table.tex
    """
    from ltds.report.collect import collect

    for file in out or []:
        if file.suffix not in (".html", *_writers()):
            raise ConfigError(
                f"Expected --out to end in .html, .md, .csv or .tex, but got '{file}'. Rename it to a known ending."
            )
    show(runs)
    for file in out or []:
        if file.suffix == ".html":
            from ltds.report.page import write_page

            write_page(collect(runs), file)
        else:
            write_text(file, _writers()[file.suffix](collect(runs)))
        SCREEN.say(f"Wrote {file}")


def show(runs: list[Path]) -> None:
    """Print the table, and a sentence for each run that could not be read."""
    from ltds.report.collect import collect
    from ltds.report.table import legend, tables_of, terminal_rows

    collection = collect(runs)
    header, rows = terminal_rows(collection)
    SCREEN.table(header, rows)
    for line in legend(tables_of(collection)):
        SCREEN.say(line)
    for problem in collection.problems:
        SCREEN.say(f"Left out: {problem}")


def _writers() -> dict[str, Callable[[Collection], str]]:
    from ltds.report.table import csv_table, latex_table, markdown_table

    return {".md": markdown_table, ".csv": csv_table, ".tex": latex_table}
