"""Every figure of a report as a separate file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ltds.core.errors import ConfigError
from ltds.core.files import write_bytes
from ltds.reporting.answer import answer
from ltds.reporting.collection import Collection
from ltds.reporting.figures import FIGURES, drawings
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.drawing import IMAGE_FORMATS


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
    """Write the figures, numbered in reading order, and a list of their captions; yields every file written."""
    captions: list[str] = []
    for dataset in collection.datasets:
        for drawing in drawings(FigureContext(dataset, answer(dataset).leader, reference), figures):
            file = folder / f"{len(captions) + 1:02}-{drawing.file_name}.{image_format}"
            write_bytes(file, IMAGE_FORMATS[image_format](drawing.drawn()))
            captions.append(f"{file.name}: {dataset.name}. {drawing.title}. {drawing.caption}")
            yield file
    write_bytes(folder / "captions.txt", ("\n".join(captions) + "\n").encode())
    yield folder / "captions.txt"
