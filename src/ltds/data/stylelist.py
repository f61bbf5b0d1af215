"""The list of stylised images that a dataset needs: builders write it, `ltds data stylize` makes these images.

On disk: `stylize.csv` in the dataset's folder (path, source, style; both paths relative to that folder). Training on
the dataset needs these images.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ltds.core.errors import DataError, expected
from ltds.core.files import atomic
from ltds.core.text import reading

STYLE_LIST_FILE = "stylize.csv"


class StyledImage(NamedTuple):
    """The image at `path` is the image at `source` in this `style`."""

    path: str
    source: str
    style: str


def write_style_list(root: Path, images: Iterable[StyledImage]) -> None:
    """Write the list line by line, without holding it in memory."""
    with atomic(root / STYLE_LIST_FILE) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(StyledImage._fields)
        writer.writerows(images)
        text.flush()
        text.detach()


def read_style_list(root: Path) -> Iterator[StyledImage]:
    """The stylised images, in the manifest's order; none if the dataset has no list."""
    file = root / STYLE_LIST_FILE
    if not file.is_file():
        return
    with reading(file) as stream:
        lines = csv.reader(stream)
        if tuple(next(lines, ())) != StyledImage._fields:
            rule = f"a list with the columns {', '.join(StyledImage._fields)}"
            raise DataError(expected(f"'{file}'", rule, "another first line", "Build the dataset again."))
        for number, line in enumerate(lines, start=2):
            if len(line) != len(StyledImage._fields):
                got = f"{len(line)} columns in line {number}"
                raise DataError(expected(f"'{file}'", "three columns in every line", got, "Build the dataset again."))
            yield StyledImage(*line)


def missing_styles(root: Path) -> dict[str, int]:
    """How many images of each style are missing; empty when all exist."""
    missing: dict[str, int] = {}
    for image in read_style_list(root):
        if not os.path.isfile(os.path.join(root, image.path)):
            missing[image.style] = missing.get(image.style, 0) + 1
    return missing


def require_styles(root: Path) -> None:
    """Raise an error that says what to do, unless every stylised image exists."""
    missing = missing_styles(root)
    if missing:
        counts = ", ".join(f"{n} of '{style}'" for style, n in missing.items())
        remedy = f"Make them with 'ltds data stylize {root}'."
        raise DataError(expected(f"the stylised images of '{root}'", "complete", f"missing ones: {counts}", remedy))
