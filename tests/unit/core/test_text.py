"""Scores as text."""

from __future__ import annotations

import math

import pytest

from ltds.core.text import score_text


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
