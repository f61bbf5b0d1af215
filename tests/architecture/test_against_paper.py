"""benchmarks/against_paper.py: methods in their form for training from scratch belong to the paper's rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from repository import benchmark_module

AGAINST = benchmark_module("against_paper")


def test_forms_for_training_from_scratch_count(monkeypatch: pytest.MonkeyPatch) -> None:
    means = {"agg": 30.0, "bsce": 40.0, "ltds": 50.0, "daml-scratch": 20.0, "isda": 10.0}
    monkeypatch.setattr(AGAINST, "ours", lambda dataset, metric: {m: SimpleNamespace(mean=v) for m, v in means.items()})
    lines = AGAINST.orders(SimpleNamespace(), "2")
    assert "over 4 methods" in lines[0], "isda is not in the paper's table"
    missing = next(line for line in lines if "only in the paper" in line)
    assert "cumix" in missing
    assert "daml," not in missing


def test_a_method_in_both_forms_counts_once_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """From scratch, daml has the paper's number here; its other form, with 99, would stand above all."""
    paper = AGAINST.preset_averages("2", "Acc-U")
    means = {**{m: paper[m] for m in ("agg", "bsce", "ltds")}, "daml-scratch": paper["daml"], "daml": 99.0}
    for names in (list(means), list(means)[::-1]):
        cells = {m: SimpleNamespace(mean=means[m]) for m in names}
        monkeypatch.setattr(AGAINST, "ours", lambda dataset, metric, cells=cells: cells)
        first = AGAINST.orders(SimpleNamespace(), "2")[0]
        assert first.startswith("- **Acc-U**: Spearman 1.00, Kendall 1.00 over 4 methods. 0 pairs"), names


def test_equal_numbers_have_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        AGAINST, "ours", lambda dataset, metric: {m: SimpleNamespace(mean=1.0) for m in ("agg", "bsce", "ltds")}
    )
    assert "no correlation: 3 methods are in both tables, or all are equal" in AGAINST.orders(SimpleNamespace(), "2")[0]
