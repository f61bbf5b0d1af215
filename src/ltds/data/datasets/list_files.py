"""The files that list images, line by line: text, or CSV with named columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, field_validator, model_validator

from ltds.core.errors import DataError, did_you_mean, expected
from ltds.core.text import composed, count, few_quoted, reading
from ltds.data.datasets.folder import DrawConfig

NO_GROUP = ("", "nan", "na", "n/a", "none", "null")  # what tables write into empty cells
COLUMNS = ("path", "label", "domain", "split", "group")  # of a CSV file; the last three may be missing


class ListsConfig(DrawConfig):
    """How the lists are written. Columns are for CSV files; text files have path, label and perhaps domain."""

    path: str = Field(default="path", description="CSV column of the path")
    label: str = Field(default="class", description="CSV column of the class")
    domain: str = Field(default="domain", description="CSV column of the domain, if there is one")
    split: str = Field(default="split", description="CSV column of the split, if there is one")
    group: str = Field(
        default="group",
        description="CSV column of what images belong to (a patient, animal or scene), if there is one: images with "
        "the same text are drawn for the same split; an empty cell, or NA, nan, none, null: it belongs to no other",
    )
    pattern: str = Field(
        default="", description="pattern of the file names, e.g. {domain}_{split}.txt, which gives domain and split"
    )

    @model_validator(mode="after")
    def _groups_apart(self) -> ListsConfig:
        if "group" in self.model_fields_set and self.group and "group" not in _columns(self):
            rule = "another column than those of path, label, domain and split"
            raise ValueError(expected("group", rule, f"'{self.group}'", "Name another, or none."))
        return self

    @field_validator("pattern")
    @classmethod
    def _names_something(cls, pattern: str) -> str:
        found = [field for field in re.findall(r"\{(.*?)\}", pattern) if field in ("domain", "split")]
        if pattern and (not found or len(set(found)) < len(found)):
            rule = "a file name with {domain} or {split} in it, each at most once"
            raise ValueError(expected("pattern", rule, pattern, "Correct it."))
        return pattern


class ListedImage(NamedTuple):
    """A line of a list; None for what it does not say."""

    path: str
    label: str
    domain: str | None
    split: str | None
    group: str | None


def read_lines(
    file: Path, config: ListsConfig, relative: Callable[[str], str | None], where: str
) -> Iterator[tuple[int, ListedImage]]:
    """The numbered lines of one file, paths changed by `relative`, with domain and split where the file's name says."""
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a list of images", "nothing there", "Check the path."))
    named = _from_name(file, config.pattern)
    lines = _csv_lines(file, config, named) if _is_csv(file) else _text_lines(file)
    for number, line in lines:
        path = relative(line.path)
        if path is None:
            rule = "the path of an image inside the source"
            raise DataError(expected(f"line {number} of '{file}'", rule, f"'{line.path}'", where))
        yield number, line._replace(path=path, **named)


def _from_name(file: Path, pattern: str) -> dict[str, str]:
    """Domain and split as the name of the file gives them."""
    if not pattern:
        return {}
    escaped = re.escape(pattern).replace(r"\{domain\}", "(?P<domain>.+)").replace(r"\{split\}", "(?P<split>[^_./-]+)")
    match = re.fullmatch(escaped, file.name)
    if match is None:
        rule, remedy = f"a name like '{pattern}'", "Correct the setting 'pattern'."
        raise DataError(expected(f"'{file.name}'", rule, "another name", remedy))
    return match.groupdict()


def _text_lines(file: Path) -> Iterator[tuple[int, ListedImage]]:
    width = 0
    with reading(file) as stream:
        for number, text in enumerate(stream, 1):
            words = text.split()
            if not words:
                continue
            width = width or len(words)
            if len(words) not in (2, 3) or len(words) != width:
                rule = "'path label' or 'path label domain', like the first"
                remedy = "Use a CSV file for paths with spaces in them."
                raise DataError(expected(f"line {number} of '{file}'", rule, f"'{text.strip()[:80]}'", remedy))
            yield number, ListedImage(words[0], words[1], words[2] if width == 3 else None, None, None)


def _csv_lines(file: Path, config: ListsConfig, named: Collection[str]) -> Iterator[tuple[int, ListedImage]]:
    """Line numbers and lines. `named`: what the file's name says, which need not be in its cells."""
    with reading(file) as stream:
        lines = csv.DictReader(stream)
        headers = list(lines.fieldnames or [])
        _require_columns(file, headers, config)
        lines.fieldnames = [_plain(header) for header in headers]
        columns = _columns(config)
        needed = ["path", "label", *(name for name in _set_columns(config) if name != "group")]
        if columns["domain"] in lines.fieldnames and "domain" not in named:
            needed.append("domain")
        for row in lines:
            _refuse_surplus(f"line {lines.line_num} of '{file}'", list(row.get(None) or ()), len(headers))
            empty = [getattr(config, name) for name in needed if not (row[columns[name]] or "").strip()]
            if empty:
                got, remedy = (
                    f"an empty cell under {', '.join(dict.fromkeys(empty))}",
                    "Fill it in, or delete the line.",
                )
                raise DataError(expected(f"line {lines.line_num} of '{file}'", "complete", got, remedy))
            # "cat " of a spreadsheet is no other class than "cat"; a file name may have such a blank
            label, domain, split = ((row.get(columns[name]) or "").strip() for name in ("label", "domain", "split"))
            group = _group(row.get(columns["group"]) or "") if "group" in columns else None
            yield lines.line_num, ListedImage(row[columns["path"]], label, domain or None, split or None, group)


def _group(cell: str) -> str | None:
    """What the image belongs to, in one spelling of blanks and accents; None for a cell that says nothing."""
    group = " ".join(composed(cell).split())
    return None if group.casefold() in NO_GROUP else group


def _refuse_surplus(line: str, surplus: Sequence[str], columns: int) -> None:
    """Raise where a line has more cells than the header, as its cells are then under wrong columns; blanks are fine."""
    if any(cell.strip() for cell in surplus):
        got = f"{columns + len(surplus)} cells"
        remedy = 'Put double quotes around a cell that contains a comma: "fox, red".'
        raise DataError(expected(line, f"{columns} cells, like the first line", got, remedy))


def _plain(header: str) -> str:
    """A column's name as it is compared: "Split" and " split" are "split"."""
    return header.strip().casefold()


def _columns(config: ListsConfig) -> dict[str, str]:
    """The column of each thing that is read, named as columns are compared; none for groups if another needs it."""
    columns = {name: _plain(getattr(config, name)) for name in COLUMNS}
    group = columns.pop("group")
    return columns if group in ("", *columns.values()) else {**columns, "group": group}


def _set_columns(config: ListsConfig) -> list[str]:
    """The optional columns that a setting names, which the file must have then."""
    return [name for name in ("domain", "split", "group") if name in config.model_fields_set & _columns(config).keys()]


def _require_columns(file: Path, headers: list[str], config: ListsConfig) -> None:
    """Raise unless the file has path, label, and whatever was named by a setting, and has what is read only once."""
    found = [_plain(header) for header in headers]
    for name in ("path", "label", *_set_columns(config)):
        column = getattr(config, name)
        if _plain(column) not in found:
            what = f"Expected '{file}' to have a column '{column}', but got {', '.join(headers) or 'none'}."
            raise DataError(f"{what} {_column_remedy(column, headers)}")
    for column in _columns(config).values():
        same = [header for header in headers if _plain(header) == column]
        if len(same) > 1:
            got, remedy = " and ".join(f"'{header}'" for header in same), "Rename or delete all but one of them."
            raise DataError(expected(f"the columns of '{file}'", f"one for '{column}'", got, remedy))


def _column_remedy(column: str, headers: list[str]) -> str:
    """What to do about a missing column; whoever trains on a list has no settings for its columns."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(headers) == 1 and separator in headers[0]:
            return f"Save the file with commas between the columns: these are {name}."
    return (
        f"Rename a column to '{column}', or build the dataset with 'ltds data build lists', whose settings path, "
        f"label, domain, split and group are the names of the columns. {did_you_mean(column, headers)}"
    )


def ignored_columns(file: Path, config: ListsConfig) -> Iterator[str]:
    """A sentence about the columns of a CSV file that nobody reads: one of them may have been meant."""
    if not _is_csv(file):
        return
    named = _from_name(file, config.pattern)
    read = {column for name, column in _columns(config).items() if name not in named}
    with reading(file) as stream:
        headers = [header.strip() for header in next(csv.reader(stream), [])]
    ignored = [header for header in headers if header and _plain(header) not in read]
    if ignored:
        was = "was" if len(ignored) == 1 else "were"
        names = ", ".join(getattr(config, name) for name in _columns(config) if name not in named)
        yield (
            f"{count(len(ignored), 'column')} of '{file.name}' {was} ignored: {few_quoted(ignored)}; those that are "
            f"read are called {names}"
        )


def _is_csv(file: Path) -> bool:
    return file.suffix.lower() == ".csv"
