"""Which mistakes are shown: worked by hand on eight images."""

from __future__ import annotations

import numpy as np
import pytest

from ltds.core.task import Task
from ltds.evaluation import mistakes
from ltds.evaluation.mistakes import Confusion, Mistake, confusions, worst_mistakes
from ltds.evaluation.table import PredictionTable


def a_task(held_out: str | None = "new") -> Task:
    counts = np.array([[5, 5, 0]] if held_out else [[5, 5, 0], [1, 1, 0]])
    return Task("toy", ("cat", "dog", "emu"), ("old", "new"), held_out, counts)


def a_table() -> PredictionTable:
    """Confidence rises with the logit; the rows 10 and 11 are of the old domain."""
    answers = [(0, 0, 9.0), (0, 1, 2.0), (0, 1, 5.0), (0, 1, 1.0), (1, 0, 3.0), (2, 1, 4.0), (2, 2, 6.0), (1, 1, 1.0)]
    rows = [*((t, p, s, 1) for t, p, s in answers), (0, 1, 8.0, 0), (1, 0, 7.0, 0)]
    logits = np.zeros((len(rows), 3), dtype=np.float32)
    for i, (_, predicted, size, _) in enumerate(rows):
        logits[i, predicted] = size
    labels, domains = (np.array([row[i] for row in rows]) for i in (0, 3))
    return PredictionTable(logits, labels, domains, np.arange(2, 12))


def test_the_most_confident_mistakes_of_the_held_out_domain_come_first() -> None:
    found = worst_mistakes(a_table(), a_task())
    # cat as dog three times, of which the surest two are shown; emu, which is open, was called dog
    assert [(m.row, m.truth, m.predicted) for m in found] == [(4, 0, 1), (7, 2, 1), (6, 1, 0), (3, 0, 1)]
    assert found[0].confidence == pytest.approx(np.exp(5) / (np.exp(5) + 2))
    assert {m.domain for m in found} == {1}


def test_only_the_first_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes, "SHOWN", 2)
    monkeypatch.setattr(mistakes, "CONFUSIONS", 1)
    assert [m.row for m in worst_mistakes(a_table(), a_task())] == [4, 7]
    assert confusions(a_table(), a_task()) == [Confusion(0, 1, 3, 4)]


def test_without_a_held_out_domain_all_images_are_judged() -> None:
    assert [m.row for m in worst_mistakes(a_table(), a_task(None))][:2] == [10, 11]


def test_confusions_count_known_classes_only() -> None:
    assert confusions(a_table(), a_task()) == [Confusion(0, 1, 3, 4), Confusion(1, 0, 1, 2)]


def test_a_model_without_mistakes() -> None:
    table = PredictionTable(np.eye(3, dtype=np.float32)[:2], np.array([0, 1]), np.array([1, 1]), np.array([0, 1]))
    assert worst_mistakes(table, a_task()) == []
    assert confusions(table, a_task()) == []
    assert Mistake(1, 0, 1, 1, 0.5).confidence == 0.5
