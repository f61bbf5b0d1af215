"""Names found in another list: exactly, or loosely where only one on each side is meant."""

from __future__ import annotations

import pytest

from ltds.core.matching import match_names


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
