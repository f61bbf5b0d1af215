"""Manifest: which images there are, of which class and domain, in which split. Everything downstream starts here.

On disk: `manifest.csv` (path, class, domain, split; paths relative to its folder) with `manifest.json` beside it
(name, the order of classes and domains, licence, how it was made, checksum).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import posixpath
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ltds.core.config import Settings, check
from ltds.core.errors import DataError, nearest
from ltds.core.files import write_json, write_text
from ltds.core.task import Task

SPLITS = ("train", "val", "test")
COLUMNS = ("path", "class", "domain", "split")


@dataclass(frozen=True)
class Manifest:
    """Rows in four parallel columns: `paths` (relative to `root`), `labels`, `domain_ids`, `split_ids`.

    A file stands in one row. Only where `test_repeats` says so may a test row name a file of a train or val row, for
    protocols whose test list of a domain is the whole domain: what was learned by heart then counts as known.
    """

    root: Path
    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    paths: tuple[str, ...]
    labels: NDArray[np.int64]
    domain_ids: NDArray[np.int64]
    split_ids: NDArray[np.int64]
    licence: str = "unknown"
    provenance: dict[str, Any] = field(default_factory=dict)
    test_repeats: bool = False

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise DataError(_many(f"The manifest '{self.name}' cannot be used", problems))

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of names and rows: equal exactly when labels, domains, splits, paths and their order are equal."""
        digest = hashlib.sha256(json.dumps([self.classes, self.domains, self.paths]).encode())
        for column in (self.labels, self.domain_ids, self.split_ids):
            digest.update(column.astype("<i8").tobytes())
        return digest.hexdigest()

    def rows(self, split: str, domain: str | None = None) -> NDArray[np.int64]:
        """Row ids of a split, optionally of one domain, ascending."""
        mask = self.split_ids == SPLITS.index(split)
        if domain is not None:
            mask &= self.domain_ids == self.domain_index(domain)
        return np.flatnonzero(mask).astype(np.int64)

    def domain_index(self, domain: str) -> int:
        if domain not in self.domains:
            raise DataError(f"Expected a domain of '{self.name}', but got '{domain}'. {nearest(domain, self.domains)}")
        return self.domains.index(domain)

    def counts(self, split: str) -> NDArray[np.int64]:
        """(domains, C) images of each pair in a split."""
        table = np.zeros((len(self.domains), len(self.classes)), dtype=np.int64)
        rows = self.rows(split)
        np.add.at(table, (self.domain_ids[rows], self.labels[rows]), 1)
        return table

    def test_images_also_in(self, split: str) -> NDArray[np.int64]:
        """(domains,) test images whose file is also in `split` ("train" or "val"): 0 unless `test_repeats`."""
        if not self.test_repeats:
            return np.zeros(len(self.domains), dtype=np.int64)
        there = {posixpath.normpath(self.paths[i]) for i in self.rows(split)}
        again = [i for i in self.rows("test") if posixpath.normpath(self.paths[i]) in there]
        return np.bincount(self.domain_ids[again], minlength=len(self.domains)).astype(np.int64)

    def task(self, held_out: str | None) -> Task:
        """The problem of training on every domain but `held_out` (None: on every domain)."""
        counts, again = self.counts("train"), self.test_images_also_in("train")
        if held_out is not None:
            counts, again = (np.delete(table, self.domain_index(held_out), axis=0) for table in (counts, again))
        if not len(counts):
            raise DataError(
                f"Expected '{self.name}' to have a domain to train on beside the held-out '{held_out}', but it is the "
                "only one. Leave --held-out away, or add domains."
            )
        task = Task(self.name, self.classes, self.domains, held_out, counts, int(again.sum()))
        empty = [d for d, n in zip(task.sources, counts.sum(axis=1), strict=True) if n == 0]
        if empty:
            raise DataError(
                f"Expected every source domain of '{self.name}' to have training images, but got none for "
                f"{', '.join(empty)}. Hold that domain out with --held-out, or add images."
            )
        return task

    def write(self) -> None:
        """Write both files; the JSON, which makes the dataset valid, comes last."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path, label, domain, split in zip(self.paths, self.labels, self.domain_ids, self.split_ids, strict=True):
            writer.writerow([path, self.classes[label], self.domains[domain], SPLITS[split]])
        write_text(self.root / "manifest.csv", text.getvalue())
        header = {
            "name": self.name,
            "classes": list(self.classes),
            "domains": list(self.domains),
            "licence": self.licence,
            "provenance": self.provenance,
            "test_repeats": self.test_repeats,
            "rows": len(self),
            "checksum": self.checksum,
        }
        write_json(self.root / "manifest.json", header)

    @classmethod
    def read(cls, root: Path) -> Manifest:
        """The dataset in this folder, checked: names, splits, duplicates, and that the files were not edited apart."""
        header = _read_header(root)
        paths, labels, domains, splits = _read_rows(root / "manifest.csv", header)
        manifest = cls(
            root=root,
            name=header.name,
            classes=header.classes,
            domains=header.domains,
            paths=paths,
            labels=labels,
            domain_ids=domains,
            split_ids=splits,
            licence=header.licence,
            provenance=header.provenance,
            test_repeats=header.test_repeats,
        )
        recorded = header.checksum
        if recorded is not None and recorded != manifest.checksum:
            raise DataError(
                f"Expected '{root / 'manifest.csv'}' to match the checksum in manifest.json ({recorded[:12]}...), but "
                f'got {manifest.checksum[:12]}.... If you edited it on purpose, delete the line "checksum" from '
                "manifest.json; otherwise build the dataset again."
            )
        return manifest


Name = Annotated[str, Field(min_length=1)]


class _Header(Settings):
    """manifest.json."""

    name: Name
    classes: tuple[Name, ...]
    domains: tuple[Name, ...]
    licence: str = "unknown"
    provenance: dict[str, Any] = Field(default_factory=dict)
    test_repeats: bool = False
    rows: int | None = None
    checksum: str | None = None


def _read_header(root: Path) -> _Header:
    if not root.is_dir():
        raise DataError(
            f"Expected a dataset folder at '{root}', but there is none. "
            "Build the embedded one with 'ltds data build bestiary', or name a folder with a manifest.csv."
        )
    file = root / "manifest.json"
    if not file.is_file():
        raise DataError(
            f"Expected '{root}' to hold manifest.csv and manifest.json, but got no manifest.json. "
            "A build that was interrupted leaves none: run 'ltds data build' again."
        )
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"Expected '{file}' to be valid JSON, but got: {error}. Build the dataset again.") from error
    if not isinstance(found, dict):
        raise DataError(f"Expected '{file}' to hold a JSON object, but got {found!r}. Build the dataset again.")
    header, problems = check(_Header, found, remedy="Mend that entry.")
    if header is None:
        raise DataError(_many(f"'{file}' cannot be used", problems))
    return header


_Columns = tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _read_rows(file: Path, header: _Header) -> _Columns:
    if not file.is_file():
        raise DataError(f"Expected '{file}' to exist, but it does not. Run 'ltds data build' again.")
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:  # spreadsheets put a byte-order mark first
            return _parse_rows(file, csv.reader(stream), header)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"Expected '{file}' to be CSV in UTF-8, but got: {error}. Save it again as UTF-8.") from error


def _parse_rows(file: Path, lines: Iterator[list[str]], header: _Header) -> _Columns:
    """The columns, made line by line: a list of all lines would cost more than all else that reading does."""
    found = tuple(next(lines, ()))
    if found != COLUMNS:
        raise DataError(
            f"Expected the first line of '{file}' to be '{','.join(COLUMNS)}', but got '{','.join(found)}'."
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
            if row:  # blank lines say nothing
                problems += _line_problems(number, row, (classes, domains, splits))
    if problems:
        raise DataError(_many(f"'{file}' cannot be read", problems))
    return tuple(paths), *(np.array(column, dtype=np.int64) for column in ids)  # type: ignore[return-value]


def _line_problems(number: int, row: list[str], codes: Sequence[Mapping[str, int]]) -> list[str]:
    if len(row) != len(COLUMNS):
        return [f"line {number}: expected {len(COLUMNS)} columns, but got {len(row)}"]
    return [
        f"line {number}: unknown {column} '{name}'. {nearest(name, code)}"
        for column, name, code in zip(COLUMNS[1:], row[1:], codes, strict=True)
        if name not in code
    ]


def _problems(manifest: Manifest) -> list[str]:
    """All that is wrong with a manifest's columns, in plain words."""
    problems = [
        f"{what} must be unique, but '{name}' comes twice"
        for what, names in (("class names", manifest.classes), ("domain names", manifest.domains))
        for name in sorted(n for n, times in Counter(names).items() if times > 1)
    ]
    lengths = {len(manifest.paths), len(manifest.labels), len(manifest.domain_ids), len(manifest.split_ids)}
    if len(lengths) > 1:
        return [*problems, f"the four columns must be equally long, but have {sorted(lengths)} rows"]
    if not len(manifest):
        return [*problems, "it has no rows"]
    bounds = (
        ("label", manifest.labels, len(manifest.classes)),
        ("domain", manifest.domain_ids, len(manifest.domains)),
        ("split", manifest.split_ids, len(SPLITS)),
    )
    for what, column, size in bounds:
        bad = np.flatnonzero((column < 0) | (column >= size))
        problems += [
            f"row {i} ({manifest.paths[i]}): expected a {what} in 0..{size - 1}, but got {column[i]}" for i in bad
        ]
    if problems:
        return problems
    return _duplicates(manifest) + _empty_classes(manifest) + _never_trained(manifest)


def _duplicates(manifest: Manifest) -> list[str]:
    """Rows that name one file twice, however they write it: a training image in the test split would go unnoticed."""
    files = [posixpath.normpath(path) for path in manifest.paths]
    if len(set(files)) == len(files):
        return []
    seen: dict[tuple[str, bool], int] = {}
    problems = []
    tested = manifest.split_ids == SPLITS.index("test")
    for i, file in enumerate(files):
        first = seen.setdefault((file, bool(tested[i]) and manifest.test_repeats), i)
        if first != i:
            problems.append(f"rows {first} and {i} are the same file '{manifest.paths[i]}'; delete one")
            continue
        other = seen.get((file, not tested[i]), i) if manifest.test_repeats else i
        if manifest.labels[i] != manifest.labels[other] or manifest.domain_ids[i] != manifest.domain_ids[other]:
            problems.append(f"rows {other} and {i} give the file '{file}' two classes or domains; mend one")
    return problems


def _empty_classes(manifest: Manifest) -> list[str]:
    present = np.bincount(manifest.labels, minlength=len(manifest.classes))
    return [
        f"class '{manifest.classes[c]}' has no image in any split; add images or take it out of manifest.json"
        for c in np.flatnonzero(present == 0)
    ]


def _never_trained(manifest: Manifest) -> list[str]:
    trained = manifest.counts("train").sum(axis=0) > 0
    validated = manifest.counts("val").sum(axis=0) > 0
    return [
        f"class '{manifest.classes[c]}' has validation images but no training image in any domain; "
        "move some to 'train', or its validation images to 'test'"
        for c in np.flatnonzero(validated & ~trained)
    ]


def _many(title: str, problems: list[str], shown: int = 10) -> str:
    lines = [f"{title}:", *(f"- {p}" for p in problems[:shown])]
    if len(problems) > shown:
        lines.append(f"- ... and {len(problems) - shown} more")
    return "\n".join(lines)
