"""The file formats of a report, by file ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ltds.core.files import has_first_line, has_mark
from ltds.reporting.collection import Collection
from ltds.reporting.figures.context import ReportFigure
from ltds.reporting.formats.csv_table import NAMES, NUMBERS, csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.json_record import json_text
from ltds.reporting.formats.latex import FIRST_LINES, latex_table
from ltds.reporting.formats.markdown import COMMENT, markdown_table

ReportFormat = Callable[[Collection, str | None, Sequence[ReportFigure]], str]


def _without_figures(make: Callable[[Collection, str | None], str]) -> ReportFormat:
    return lambda collection, reference, figures: make(collection, reference)


FORMATS: dict[str, ReportFormat] = {
    ".html": render_page,
    ".md": _without_figures(markdown_table),
    ".csv": _without_figures(csv_table),
    ".tex": _without_figures(latex_table),
    ".json": _without_figures(json_text),
}
IS_REPORT: dict[str, Callable[[Path], bool]] = {  # what tells whether a file of each format is a report
    ".html": has_mark("<title>ltds report: "),
    ".md": has_first_line(COMMENT),
    ".csv": has_mark(",".join([*NAMES, *NUMBERS])),
    ".tex": has_first_line(*FIRST_LINES),
    ".json": has_mark('"unit": "percent",\n  "interval": {'),
}
