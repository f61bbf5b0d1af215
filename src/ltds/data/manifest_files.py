"""The two files of a manifest: manifest.csv with a row for each image, manifest.json with everything else."""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ltds.core.config import Settings, check_settings
from ltds.core.errors import DataError, did_you_mean
from ltds.core.files import write_csv, write_json
from ltds.core.text import reading
from ltds.data.manifest_checks import bullet_list
from ltds.data.splits import SPLITS

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest

COLUMNS = ("path", "class", "domain", "split")
NonEmpty = Annotated[str, Field(min_length=1)]
RowColumns = tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class ManifestHeader(Settings):
    """manifest.json."""

    name: NonEmpty = Field(description="name of the dataset")
    classes: tuple[NonEmpty, ...] = Field(description="class names, in the order of the labels")
    domains: tuple[NonEmpty, ...] = Field(description="domain names, in the order of their ids")
    licence: str = Field(default="unknown", description="licence of the images")
    provenance: dict[str, Any] = Field(default_factory=dict, description="how the dataset was made")
    test_repeats: bool = Field(default=False, description="whether test rows may repeat files of other splits")
    whole_held_out: bool = Field(
        default=False, description="whether a held-out domain is tested on all of its images, whatever their split"
    )
    rows: int | None = Field(default=None, description="number of images")
    checksum: str | None = Field(default=None, description="SHA-256 of names and rows")


def write_rows(manifest: Manifest) -> None:
    """Write manifest.csv."""
    columns = (manifest.paths, manifest.labels, manifest.domain_ids, manifest.split_ids)
    rows = (
        (path, manifest.classes[label], manifest.domains[domain], SPLITS[split])
        for path, label, domain, split in zip(*columns, strict=True)
    )
    write_csv(manifest.root / "manifest.csv", chain([COLUMNS], rows))


def write_header(manifest: Manifest) -> None:
    """Write manifest.json."""
    header = {
        "name": manifest.name,
        "classes": list(manifest.classes),
        "domains": list(manifest.domains),
        "licence": manifest.licence,
        "provenance": manifest.provenance,
        "test_repeats": manifest.test_repeats,
        **({"whole_held_out": True} if manifest.whole_held_out else {}),
        "rows": len(manifest),
        "checksum": manifest.checksum,
    }
    write_json(manifest.root / "manifest.json", header)


def read_header(root: Path) -> ManifestHeader:
    """manifest.json in this folder."""
    if not root.is_dir():
        raise DataError(
            f"Expected a dataset folder at '{root}', but there is none. "
            "Build the one that comes with ltds ('ltds data build bestiary'), or name a folder with a manifest.csv."
        )
    file = root / "manifest.json"
    if not file.is_file():
        raise DataError(
            f"Expected '{root}' to hold manifest.csv and manifest.json, but got no manifest.json. "
            "If its build was interrupted, run 'ltds data build' again."
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"Expected '{file}' to be valid JSON, but got: {error}. Build the dataset again.") from error
    if not isinstance(content, dict):
        raise DataError(f"Expected '{file}' to hold a JSON object, but got {content!r}. Build the dataset again.")
    header, problems = check_settings(ManifestHeader, content, remedy="Correct that entry.")
    if header is None:
        raise DataError(bullet_list(f"'{file}' cannot be used", problems))
    return header


def read_rows(file: Path, header: ManifestHeader) -> RowColumns:
    """The columns of manifest.csv: paths, labels, domain ids, split ids."""
    if not file.is_file():
        raise DataError(f"Expected '{file}' to exist, but it does not. Run 'ltds data build' again.")
    with reading(file) as stream:
        return _parse_rows(file, csv.reader(stream), header)


def _parse_rows(file: Path, lines: Iterator[list[str]], header: ManifestHeader) -> RowColumns:
    """The columns, filled line by line: a list of all lines would take more memory than everything else here."""
    first_line = tuple(next(lines, ()))
    if first_line != COLUMNS:
        raise DataError(
            f"Expected the first line of '{file}' to be '{','.join(COLUMNS)}', but got '{','.join(first_line)}'."
        )
    classes, domains, splits = ({name: i for i, name in enumerate(n)} for n in (header.classes, header.domains, SPLITS))
    paths: list[str] = []
    ids = (array("q"), array("q"), array("q"))
    add_path, add_label, add_domain, add_split = paths.append, *(column.append for column in ids)
    problems: list[str] = []
    for number, row in enumerate(lines, 2):
        try:
            path, label, domain, split = row
            add_label(classes[label])
            add_domain(domains[domain])
            add_split(splits[split])
            add_path(path)
        except (ValueError, KeyError):
            if row:  # not a blank line
                problems += _line_problems(number, row, (classes, domains, splits))
    if problems:
        raise DataError(bullet_list(f"'{file}' cannot be read", problems))
    return tuple(paths), *(np.array(column, dtype=np.int64) for column in ids)  # type: ignore[return-value]


def _line_problems(number: int, row: list[str], codes: Sequence[Mapping[str, int]]) -> list[str]:
    if len(row) != len(COLUMNS):
        return [f"line {number}: expected {len(COLUMNS)} columns, but got {len(row)}"]
    return [
        f"line {number}: unknown {column} '{name}'. {did_you_mean(name, code)}"
        for column, name, code in zip(COLUMNS[1:], row[1:], codes, strict=True)
        if name not in code
    ]
