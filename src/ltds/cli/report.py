"""`ltds report`: tables and a page from run directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltds.cli.screen import SCREEN

if TYPE_CHECKING:
    from ltds.reporting.collection import Collection


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories, or folders that contain some.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="File to write: .html (page), .md, .csv or .tex (table), .json (every number). May be repeated."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Method to compare the others with (default: agg, or else the first)."),
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder to write the figures to, one file each.")] = None,
    figure_format: Annotated[str, typer.Option(help="png, svg or pdf.")] = "png",
    all_figures: Annotated[
        bool,
        typer.Option("--all-figures", help="Draw figures of single runs in the page of more than 100 runs, too."),
    ] = False,
) -> None:
    """Compare runs: print a table, and write files; the ending of a file's name chooses its format.

    Example: ltds report runs --out report.html --out table.tex --reference bsce --figures figures
    """
    from ltds.reporting.collection import collect
    from ltds.reporting.comparison import check_reference
    from ltds.reporting.write import check_outputs, write_report

    files = out or []
    check_outputs(files, figure_format)
    collection = collect(runs)
    check_reference(collection.datasets, reference)
    show(collection, reference)
    written = write_report(
        collection, files, reference, figures, figure_format, all_figures=all_figures, progress=SCREEN
    )
    for file in files:
        SCREEN.say(f"Wrote {file}")
    if figures is not None:
        SCREEN.say(f"Wrote {len(written) - len(files) - 1} figures, and captions.txt, to {figures}")


def show(collection: Collection, reference: str | None = None) -> None:
    """Print the tables, the conclusion, and remarks that help to read them correctly."""
    from ltds.reporting.answer import answer
    from ltds.reporting.comparison_table import sentences
    from ltds.reporting.formats.terminal import cost_rows, terminal_rows
    from ltds.reporting.legend import all_tables, comparison_tables, legend

    SCREEN.table(*terminal_rows(collection))
    SCREEN.table(*cost_rows(collection))
    shown = []
    for dataset in collection.datasets:
        for table in comparison_tables(dataset, reference)[:1]:  # the files have the other metrics
            SCREEN.say(table.title)
            SCREEN.table(["Method", *table.headings], [[table.name(label), *fields] for label, fields in table.rows])
            shown.append(table)
        if len(dataset.rows) > 1:
            best = answer(dataset)
            SCREEN.say(f"{best.verdict} {best.certainty}")
    for line in dict.fromkeys([*legend(all_tables(collection)), *sentences(shown), *collection.problems]):
        SCREEN.say(line)
