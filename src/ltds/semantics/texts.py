"""Texts: what to say of a class to a word list or a language model: its name, or a sentence about it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ltds.core.errors import ConfigError, DataError, expected, nearest

BETWEEN = r"[\s+_\-,/()]+"
TWIN = r"(?<=\w)\s*\(n\d{8}\)$"
"""The WordNet id that tells two ImageNet classes of one name apart: "missile (n03773504)". No word in a text."""


def words(name: str) -> tuple[str, ...]:
    """The words of a class name, whatever stands between them: "grizzly+bear" -> ("grizzly", "bear")."""
    return _split(re.sub(TWIN, "", name))


def _split(name: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(BETWEEN, name) if word)


def name_texts(classes: Iterable[str], prompt: str = "{}") -> dict[str, str]:
    """Each class's name in plain words, inside the prompt ("a photo of a {}")."""
    if prompt.count("{}") != 1:
        raise ConfigError(expected("--prompt", "a text with one {}", f"'{prompt}'", "Write e.g. 'a photo of a {}'."))
    return {name: prompt.replace("{}", " ".join(words(name))) for name in classes}


def read_descriptions(file: Path, classes: Iterable[str]) -> dict[str, str]:
    """Each class's text in a CSV file with the columns class and description."""
    if not file.is_file():
        remedy = "Write a CSV file with the columns class and description, and name it: --text descriptions:FILE."
        raise DataError(expected(f"'{file}'", "a file of descriptions", "nothing there", remedy))
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            columns, rows = list(reader.fieldnames or ()), list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        remedy = "Save it anew: in a spreadsheet choose 'CSV UTF-8', in an editor the encoding UTF-8."
        raise DataError(expected(f"'{file}'", "a CSV file in UTF-8", f"'{error}'", remedy)) from error
    if not {"class", "description"} <= set(columns):
        rule, remedy = "a CSV with the columns class and description", "Name the columns in the first line."
        raise DataError(expected(f"'{file}'", rule, f"'{','.join(columns)}'", remedy))
    found = {_plain(row["class"] or ""): (row["description"] or "").strip() for row in rows}
    missing = [name for name in classes if not found.get(_plain(name))]
    if missing:
        remedy = f"Add lines for them to '{file}'."
        raise DataError(expected("a description of every class", "there", f"none for {', '.join(missing)}", remedy))
    return {name: found[_plain(name)] for name in classes}


def read_aliases(pairs: Iterable[str], classes: Iterable[str]) -> Mapping[str, str]:
    """`["dalmatian=spotted dog"]` as a table from class to the words to look up for it."""
    known, aliases = set(classes), {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not words(text):
            raise ConfigError(expected("--alias", "like CLASS=WORDS", f"'{pair}'", "Write e.g. dalmatian='dog'."))
        if name not in known:
            raise ConfigError(expected("--alias", "for a class of the dataset", f"'{name}'", nearest(name, known)))
        aliases[name] = text
    return aliases


def _plain(name: str) -> str:
    """A name to match by; twins stay apart here."""
    return " ".join(_split(name)).lower()
