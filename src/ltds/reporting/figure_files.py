"""Every figure of a report as a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ltds.core.errors import ConfigError
from ltds.core.files import write_bytes
from ltds.reporting.answer import answer
from ltds.reporting.collect import Collection
from ltds.reporting.drawing import FORMATS
from ltds.reporting.pictures import pictures


def check_format(kind: str) -> None:
    """Raise a ConfigError where figures cannot be written so."""
    if kind not in FORMATS:
        raise ConfigError(f"Expected --figure-format to be {', '.join(FORMATS)}, but got '{kind}'. Use one of these.")


def write_figures(collection: Collection, folder: Path, kind: str, reference: str | None = None) -> Iterator[Path]:
    """Write the figures, numbered in reading order, and a list of their captions; yields each file that it wrote."""
    captions: list[str] = []
    for dataset in collection.datasets:
        for drawing in pictures(dataset, answer(dataset), reference):
            file = folder / f"{len(captions) + 1:02}-{drawing.file_name}.{kind}"
            write_bytes(file, FORMATS[kind](drawing.figure))
            captions.append(f"{file.name}: {dataset.name}. {drawing.title}. {drawing.caption}")
            yield file
    write_bytes(folder / "captions.txt", ("\n".join(captions) + "\n").encode())
    yield folder / "captions.txt"
