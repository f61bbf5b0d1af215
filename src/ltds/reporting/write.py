"""`report`: tables, a page and figures from run directories, written to files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from ltds.core.errors import ConfigError, LtdsWarning
from ltds.core.files import refuse_to_replace, write_text
from ltds.core.progress import SILENT, Progress
from ltds.reporting.collection import Collection, collect
from ltds.reporting.comparison import check_reference
from ltds.reporting.figures import FIGURES, OF_SINGLE_RUNS
from ltds.reporting.figures.context import ReportFigure
from ltds.reporting.figures.files import check_image_format, write_figures
from ltds.reporting.figures.outside import GuardedFigure, figure_problems
from ltds.reporting.formats import FORMATS, IS_REPORT

MANY_RUNS = 100  # with more, figures of single runs are drawn on request
SHOWN = 3  # problems in a warning
Paths = Path | str | Iterable[Path | str]


def report(
    runs: Paths,
    out: Paths = (),
    reference: str | None = None,
    figures: Path | str | None = None,
    figure_format: str = "png",
    extra_figures: Sequence[ReportFigure] = (),
    all_figures: bool = False,
    progress: Progress = SILENT,
) -> list[Path]:
    """Compare runs, and return the files that were written.

    An LtdsWarning names the problems of the runs, such as runs that are left out; every format but .csv lists them.

    Args:
        runs: Run directories, or folders that contain some.
        out: Files to write. The ending of each name chooses its format: .html, .md, .csv, .tex or .json.
        reference: The method with which the others are compared; by default agg, or the first.
        figures: A folder to write every figure to, as a file.
        figure_format: "png", "svg" or "pdf", for `figures`.
        extra_figures: Functions that yield more figures for the page and the folder, see `ltds.reporting.figures`.
        all_figures: Also draw the figures of single runs in a page of more than 100 runs, which takes seconds.
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    files = _paths(out)
    check_outputs(files, figure_format)
    collection = collect(_paths(runs))
    check_reference(collection.datasets, reference)
    if collection.problems:
        warnings.warn(_warning(collection.problems), LtdsWarning, stacklevel=2)
    return write_report(collection, files, reference, figures, figure_format, extra_figures, all_figures, progress)


def check_outputs(files: Iterable[Path], figure_format: str) -> None:
    """Raise a ConfigError if a file or the figures cannot be written in their format."""
    *first, last = FORMATS
    for file in files:
        if file.suffix not in FORMATS:
            known = f"{', '.join(first)} or {last}"
            raise ConfigError(
                f"Expected the output file to end in {known}, but got '{file}'. Rename it.", arguments=["out"]
            )
        refuse_to_replace(file, "a report of ltds", IS_REPORT[file.suffix])
    check_image_format(figure_format)


def write_report(
    collection: Collection,
    files: Sequence[Path],
    reference: str | None = None,
    figures: Path | str | None = None,
    figure_format: str = "png",
    extra_figures: Sequence[ReportFigure] = (),
    all_figures: bool = False,
    progress: Progress = SILENT,
) -> list[Path]:
    """As `report`, for runs that were collected before."""
    every: tuple[ReportFigure, ...] = (*FIGURES, *map(GuardedFigure, extra_figures))
    many = len(collection.runs) > MANY_RUNS and not all_figures
    shown = tuple(figure for figure in every if not (many and figure in OF_SINGLE_RUNS))
    drawn: list[Path] = []
    if figures is not None:  # before the files: if a figure would replace a file of the user, nothing is written
        drawn = list(write_figures(collection, Path(figures), figure_format, reference, every))
    with progress.track("Writing", len(files)) as advance:
        for file in files:
            write_text(file, FORMATS[file.suffix](collection, reference, shown))
            advance(note=str(file))
    if failed := figure_problems(every):
        warnings.warn(" ".join(failed), LtdsWarning, stacklevel=3)
    return [*files, *drawn]


def _warning(problems: Sequence[str]) -> str:
    more = len(problems) - SHOWN
    rest = f" And {more} more: write a page (.html) or a table (.md) to see them." if more > 0 else ""
    return f"Problems of the runs: {' '.join(problems[:SHOWN])}{rest}"


def _paths(paths: Paths) -> list[Path]:
    return [Path(paths)] if isinstance(paths, Path | str) else [Path(path) for path in paths]
