"""Names found in another list: exactly, or loosely where only one on each side is meant."""

from __future__ import annotations

import re
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltds.core.matching import match_names, plain_spelling


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [
        (["a", "B"], ["B", "a", "a"], [1, 0, 0]),
        (["a", "B"], ["b", "A"], [1, 0]),
        (["a", "A"], ["A", "a"], [1, 0]),
        (["a", "A", "c"], ["C", "á", "a"], [2, None, 0]),
        (["bb", "BB"], ["Bb"], [None]),  # either could be meant
        (["b"], ["B", "b"], [None, 0]),  # "b" is asked for itself, so "B" is another
        (["b"], ["B", "B"], [0, 0]),  # the same name twice
        ([], ["a"], [None]),
        (["a"], [], []),
    ],
)
def test_match_names(stored: list[str], asked: list[str], expected: list[int | None]) -> None:
    assert match_names(stored, asked, str.lower) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("grizzly+bear", " Grizzly_ bear-"),
        ("Straße", "STRASSE"),
        ("Café", unicodedata.normalize("NFD", "café")),
        ("Tee", "\uff34ee"),  # a wide T
    ],
)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert plain_spelling(one) == plain_spelling(other)
    assert plain_spelling(f"{one} x") != plain_spelling(one)


@given(st.text(string.printable))
def test_plain_ascii_names_are_as_they_always_were(name: str) -> None:
    """Which embedding a class of the published datasets gets depends on it."""
    assert plain_spelling(name) == re.sub(r"[\s+_\-]+", " ", name).strip().lower()


def test_what_separates_words_may_be_said() -> None:
    assert plain_spelling("Missile (n03773504)", r"[\s()]+") == "missile n03773504"
    assert plain_spelling("Polar bear+", r"\s+", joined_by="") == "polarbear+"
