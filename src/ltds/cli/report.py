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
    from ltds.reporting.collect import Collection

ENDINGS = (".html", ".md", ".csv", ".tex", ".json")


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or folders that hold some.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="File to write: .html (page), .md, .csv or .tex (table), .json (every number). May be repeated."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Method that the others are compared with: agg, or the first, where none is named."),
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder to write each figure to, as a file.")] = None,
    figure_format: Annotated[str, typer.Option(help="png, svg or pdf.")] = "png",
) -> None:
    """Compare runs: a table on the screen, and files in the formats their endings name.

    Example: ltds report runs --out report.html --out table.tex --reference bsce --figures figures
    """
    from ltds.reporting.collect import collect
    from ltds.reporting.comparison import check_reference
    from ltds.reporting.figure_files import check_format, write_figures

    files = out or []
    for file in files:
        if file.suffix not in ENDINGS:
            known = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
            raise ConfigError(f"Expected --out to end in {known}, but got '{file}'. Rename it to a known ending.")
    check_format(figure_format)
    collection = collect(runs)
    check_reference(collection.datasets, reference)
    show(collection, reference)
    with SCREEN.track("Writing", len(files)) as advance:
        for file in files:
            _writers()[file.suffix](collection, file, reference)
            advance(note=str(file))
            SCREEN.say(f"Wrote {file}")
    if figures is not None:
        written = list(write_figures(collection, figures, figure_format, reference))
        SCREEN.say(f"Wrote {len(written) - 1} figures, and captions.txt, to {figures}")


def show(collection: Collection, reference: str | None = None) -> None:
    """Print the tables, the answer, and a sentence for each thing that a reader of them should know."""
    from ltds.reporting.answer import answer
    from ltds.reporting.comparison_table import sentences
    from ltds.reporting.table import cost_rows, legend, sheets_of, tables_of, terminal_rows

    SCREEN.table(*terminal_rows(collection))
    SCREEN.table(*cost_rows(collection))
    shown = []
    for dataset in collection.datasets:
        for sheet in sheets_of(dataset, reference)[:1]:  # the files have the other metrics
            SCREEN.say(sheet.title)
            SCREEN.table(["Method", *sheet.headings], [[label, *fields] for label, fields in sheet.rows])
            shown.append(sheet)
        if len(dataset.rows) > 1:
            found = answer(dataset)
            SCREEN.say(f"{found.verdict} {found.certainty}")
    for line in [*legend(tables_of(collection)), *sentences(shown), *collection.problems]:
        SCREEN.say(line)


def _writers() -> dict[str, Callable[[Collection, Path, str | None], None]]:
    from ltds.reporting.latex import latex_table
    from ltds.reporting.page import write_page
    from ltds.reporting.record import write_record
    from ltds.reporting.spreadsheet import csv_table
    from ltds.reporting.table import markdown_table

    def text(make: Callable[[Collection, str | None], str]) -> Callable[[Collection, Path, str | None], None]:
        return lambda collection, file, reference: write_text(file, make(collection, reference))

    writers = (write_page, text(markdown_table), text(csv_table), text(latex_table), write_record)
    return dict(zip(ENDINGS, writers, strict=True))
