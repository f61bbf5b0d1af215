"""Texts about classes for word vectors or language models: the name of a class, or a sentence about it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ltds.core.errors import ConfigError, DataError, did_you_mean, expected
from ltds.core.matching import match_names, plain_spelling
from ltds.core.text import reading

SEPARATORS = r"[\s+_\-,/()]+"
WORDNET_ID = r"(?<=\w)\s*\(n\d{8}\)$"
"""The WordNet id that distinguishes two ImageNet classes of the same name: "missile (n03773504)". Not a word."""


def words(name: str) -> tuple[str, ...]:
    """The words of a class name, whatever separates them: "grizzly+bear" -> ("grizzly", "bear")."""
    return tuple(word for word in re.split(SEPARATORS, re.sub(WORDNET_ID, "", name)) if word)


def name_texts(classes: Iterable[str], prompt: str = "{}") -> dict[str, str]:
    """Each class's name in plain words, inside the prompt ("a photo of a {}")."""
    if prompt.count("{}") != 1:
        raise ConfigError(
            expected("argument 'prompt'", "a text with one {}", f"'{prompt}'", "Example: 'a photo of a {}'.")
        )
    return {name: prompt.replace("{}", " ".join(words(name))) for name in classes}


def read_descriptions(file: Path, classes: Iterable[str]) -> dict[str, str]:
    """Each class's text in a CSV file with the columns class and description.

    Names match exactly, or else by their `plain_spelling`, where only one can be meant: HER2+ and HER2- are two
    classes.
    """
    if not file.is_file():
        remedy = "Write a CSV file with the columns class and description, and name it as descriptions:FILE."
        raise DataError(expected(f"'{file}'", "a file of descriptions", "nothing there", remedy))
    with reading(file) as stream:
        reader = csv.DictReader(stream)
        columns, rows = list(reader.fieldnames or ()), list(reader)
    if not {"class", "description"} <= set(columns):
        rule, remedy = "a CSV with the columns class and description", "Name the columns in the first line."
        raise DataError(expected(f"'{file}'", rule, f"'{','.join(columns)}'", remedy))
    exact = {(row["class"] or "").strip(): (row["description"] or "").strip() for row in rows}
    classes = list(classes)
    texts = list(exact.values())
    matches = match_names(list(exact), classes, _plain)
    found = {name: "" if i is None else texts[i] for name, i in zip(classes, matches, strict=True)}
    missing = [name for name, text in found.items() if not text]
    if missing:
        remedy = f"Add lines for them to '{file}'."
        raise DataError(expected("a description of every class", "given", f"none for {', '.join(missing)}", remedy))
    return found


def read_aliases(pairs: Iterable[str], classes: Iterable[str]) -> Mapping[str, str]:
    """`["dalmatian=spotted dog"]` as a table from class to the words to look up for it."""
    known, aliases = set(classes), {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not words(text):
            raise ConfigError(expected("argument 'alias'", "like CLASS=WORDS", f"'{pair}'", "Example: dalmatian=dog."))
        if name not in known:
            got = f"'{name}'"
            raise ConfigError(
                expected("argument 'alias'", "for a class of the dataset", got, did_you_mean(name, known))
            )
        aliases[name] = text
    return aliases


def _plain(name: str) -> str:
    """As `words` splits a name, but with the WordNet id, which distinguishes classes of the same name."""
    return plain_spelling(name, SEPARATORS)
