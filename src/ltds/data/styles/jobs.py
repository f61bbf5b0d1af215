"""Jobs: which image is to be made from which, in which style. A builder writes them beside the manifest."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ltds.core.errors import DataError, expected
from ltds.core.files import write_text

JOBS_FILE = "stylize.csv"
COLUMNS = ("path", "source", "style")


class Job(NamedTuple):
    """Make `path` (relative to the dataset folder) from `source` (relative to it too, or absolute) in `style`."""

    path: str
    source: str
    style: str


def write_jobs(root: Path, jobs: Iterable[Job]) -> None:
    """Write `stylize.csv` into the dataset folder."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(jobs)
    write_text(root / JOBS_FILE, text.getvalue())


def read_jobs(root: Path) -> list[Job]:
    """The jobs in `stylize.csv` of the dataset folder, checked: three columns, no path twice or out of the folder."""
    file = root / JOBS_FILE
    if not file.is_file():
        remedy = "Name a dataset that 'ltds data build' made with styles; or give --style and --out for a folder."
        raise DataError(expected(f"'{file}'", "the list of images to stylise", "nothing there", remedy))
    with file.open(newline="", encoding="utf-8-sig") as stream:
        lines = list(csv.reader(stream))
    if not lines or tuple(lines[0]) != COLUMNS:
        got = f"'{','.join(lines[0]) if lines else ''}'"
        raise DataError(expected(f"the first line of '{file}'", f"'{','.join(COLUMNS)}'", got, "Build it again."))
    jobs = [_job(file, number, row) for number, row in enumerate(lines[1:], 2) if row]
    seen: set[str] = set()
    for job in jobs:
        if job.path in seen:
            raise DataError(expected(f"every path in '{file}'", "unique", f"'{job.path}' twice", "Build it again."))
        seen.add(job.path)
    return jobs


def _job(file: Path, number: int, row: list[str]) -> Job:
    if len(row) != len(COLUMNS) or not all(row):
        rule = "a path, a source and a style"
        raise DataError(expected(f"line {number} of '{file}'", rule, f"'{','.join(row)}'", "Mend that line."))
    path = PurePosixPath(row[0])
    if path.is_absolute() or ".." in path.parts:  # a list from elsewhere must not write outside the dataset
        rule = "a path inside the dataset folder"
        raise DataError(expected(f"line {number} of '{file}'", rule, f"'{row[0]}'", "Mend that line."))
    return Job(*row)
