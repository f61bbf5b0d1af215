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

    files = out or []
    for file in files:
        if file.suffix not in _writers():
            raise ConfigError(
                f"Expected --out to end in .html, .md, .csv or .tex, but got '{file}'. Rename it to a known ending."
            )
    collection = collect(runs)
    show(collection)
    with SCREEN.track("Writing", len(files)) as advance:
        for file in files:
            _writers()[file.suffix](collection, file)
            advance(note=str(file))
            SCREEN.say(f"Wrote {file}")


def show(collection: Collection) -> None:
    """Print the table, and a sentence for each thing that a reader of it should know."""
    from ltds.report.table import legend, tables_of, terminal_rows

    header, rows = terminal_rows(collection)
    SCREEN.table(header, rows)
    for line in [*legend(tables_of(collection)), *collection.problems]:
        SCREEN.say(line)


def _writers() -> dict[str, Callable[[Collection, Path], None]]:
    from ltds.report.page import write_page
    from ltds.report.table import csv_table, latex_table, markdown_table

    def text(make: Callable[[Collection], str]) -> Callable[[Collection, Path], None]:
        return lambda collection, file: write_text(file, make(collection))

    return {".html": write_page, ".md": text(markdown_table), ".csv": text(csv_table), ".tex": text(latex_table)}
