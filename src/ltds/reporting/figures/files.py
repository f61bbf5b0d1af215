"""Every figure of a report as a separate file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ltds.core.errors import ConfigError
from ltds.core.files import first_line_of, refuse_to_replace, write_bytes, write_text
from ltds.reporting.answer import answer
from ltds.reporting.collection import Collection
from ltds.reporting.dataset import Dataset
from ltds.reporting.figures import FIGURES, drawings
from ltds.reporting.figures.canvas import is_drawn
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.drawing import IMAGE_FORMATS, Drawing


def check_image_format(name: str) -> None:
    """Raise a ConfigError if figures cannot be written in this format."""
    if name not in IMAGE_FORMATS:
        known = ", ".join(IMAGE_FORMATS)
        raise ConfigError(
            f"Expected figure_format to be {known}, but got '{name}'. Use one of these.", arguments=["figure_format"]
        )


def write_figures(
    collection: Collection,
    folder: Path,
    image_format: str,
    reference: str | None = None,
    figures: Sequence[ReportFigure] = FIGURES,
) -> Iterator[Path]:
    """Write the figures, numbered in reading order, and a list of their captions; yields every file written.

    Raises before the first one if any of them would replace a file that is none of these.
    """
    shown = {
        folder / f"{number:02}-{drawing.file_name}.{image_format}": (dataset, drawing)
        for number, (dataset, drawing) in enumerate(_drawings(collection, reference, figures), start=1)
    }
    for file in shown:
        refuse_to_replace(file, "a figure of ltds report", is_drawn, "folder")
    captions = folder / "captions.txt"
    refuse_to_replace(captions, "the captions of such figures", _has_captions, "folder")
    for file, (_, drawing) in shown.items():
        write_bytes(file, IMAGE_FORMATS[image_format](drawing.drawn()))
        yield file
    lines = (f"{file.name}: {dataset.name}. {d.title}. {d.caption}\n" for file, (dataset, d) in shown.items())
    write_text(captions, "".join(lines))
    yield captions


def _drawings(
    collection: Collection, reference: str | None, figures: Sequence[ReportFigure]
) -> Iterator[tuple[Dataset, Drawing]]:
    for dataset in collection.datasets:
        for drawing in drawings(FigureContext(dataset, answer(dataset).leader, reference), figures):
            yield dataset, drawing


def _has_captions(file: Path) -> bool:
    """Whether the first line of a file begins with the name of the first figure."""
    return bool(re.match(rf"01-[\w-]+\.({'|'.join(IMAGE_FORMATS)}): ", first_line_of(file)))
