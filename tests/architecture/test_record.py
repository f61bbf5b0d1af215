"""benchmarks/record.py: runs that differ in more than their seed never become one row."""

from __future__ import annotations

from repository import benchmark_module

RECORD = benchmark_module("record")


def run(seed: int, held_out: str = "x", **settings: object) -> dict[str, object]:
    return {"row": "agg", "data": "d", "held_out": held_out, "seed": seed, "settings": settings}


def test_seeds_of_one_row_have_the_same_settings() -> None:
    assert RECORD.different([run(0, lr=0.1), run(1, lr=0.1), run(0, "y", lr=0.2)]) == "", "another dataset or domain"
    problem = RECORD.different([run(0, lr=0.1, width=8), run(1, lr=0.2)])
    assert problem == "('agg', 'd', 'x') differ in lr, width"
