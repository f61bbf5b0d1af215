"""The file formats of a report, by file ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ltds.reporting.collection import Collection
from ltds.reporting.figures.context import ReportFigure
from ltds.reporting.formats.csv_table import NAMES, csv_table
from ltds.reporting.formats.html.page import render_page
from ltds.reporting.formats.json_record import json_text
from ltds.reporting.formats.latex import NEEDS, latex_table
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
MARKS = {  # near the beginning of a file of each format, and of no other file
    ".html": "<title>ltds report: ",
    ".md": COMMENT,
    ".csv": ",".join(NAMES),
    ".tex": NEEDS,
    ".json": '"unit": "percent",\n  "interval": {',
}
