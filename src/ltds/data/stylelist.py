"""StyleList: the stylised images that a dataset needs. Builders write it, `ltds data stylize` makes what it names.

On disk: `stylize.csv` beside the manifest (path, source, style; both paths relative to the dataset's folder). A dataset
is complete without these images, but it can be trained on only once they are there.
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

FILE = "stylize.csv"


class StyledImage(NamedTuple):
    """Make `path` by giving the image `source` this `style`."""

    path: str
    source: str
    style: str


def write_style_list(root: Path, images: Iterable[StyledImage]) -> None:
    """Write the list as it comes, without holding it in memory."""
    with atomic(root / FILE) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(StyledImage._fields)
        writer.writerows(images)
        text.flush()
        text.detach()


def read_style_list(root: Path) -> Iterator[StyledImage]:
    """The images to be made, in the manifest's order; none where the dataset has no list."""
    file = root / FILE
    if not file.is_file():
        return
    with file.open(newline="", encoding="utf-8") as stream:
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
    """How many images of each style are still to be made; empty when all are there."""
    missing: dict[str, int] = {}
    for image in read_style_list(root):
        if not os.path.isfile(os.path.join(root, image.path)):
            missing[image.style] = missing.get(image.style, 0) + 1
    return missing


def require_styles(root: Path) -> None:
    """Raise the error that says what to type, unless every stylised image is there."""
    missing = missing_styles(root)
    if missing:
        counts = ", ".join(f"{n} of '{style}'" for style, n in missing.items())
        remedy = f"Make them with 'ltds data stylize {root}'."
        raise DataError(expected(f"the stylised images of '{root}'", "there", f"none yet for {counts}", remedy))
