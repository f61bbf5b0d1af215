"""Scores as text, and numbers with their nouns."""

from __future__ import annotations

import math

import pytest

from ltds.core.text import count, score_text


@pytest.mark.parametrize(
    ("score", "others", "shown"),
    [
        (0.95218, (), "0.9522"),
        (0.99996, (), "0.999960"),
        (1 - 4e-13, (), "0.99999999999960"),
        (0.00002, (), "0.000020"),
        (1.0, (), "1.0000"),
        (0.0, (0.5,), "0.0000"),
        (0.9928, (0.9912,), "0.9928"),
        (0.99284, (0.99281, 0.5), "0.99284"),
        (0.99284, (0.99284,), "0.9928"),
        (0.5, (0.5 - 2**-52,), "0.5000000000000000"),
        (math.inf, (0.7,), "inf"),
        (-99.0, (), "-99.0000"),
    ],
)
def test_a_score_is_told_from_others_and_from_the_ends(score: float, others: tuple[float, ...], shown: str) -> None:
    assert score_text(score, others) == shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, "image"), "1 image"),
        ((0, "image"), "0 images"),
        ((2, "class"), "2 classes"),
        ((1, "image was", "images were"), "1 image was"),
        ((3, "image was", "images were"), "3 images were"),
    ],
)
def test_one_and_several(arguments: tuple[int, str], words: str) -> None:
    assert count(*arguments) == words
