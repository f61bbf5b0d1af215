"""docs/metrics-example.md: every number that it works out by hand is what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ltds.core.task import Task
from ltds.evaluation import PredictionTable, compute_metrics, expected_calibration_error, known_and_open_rates
from ltds.evaluation.class_groups import answer_shares
from ltds.evaluation.metrics import harmonic
from ltds.evaluation.openset import OpenSetScores, percentile_threshold

PAGE = (Path(__file__).parents[3] / "docs" / "metrics-example.md").read_text(encoding="utf-8")
CLASSES, DOMAINS = ("cat", "fox", "owl", "bat"), ("day", "dusk", "night")
ROWS = re.findall(r"(?m)^\| \d+ \| (\w+) \| (\w+) \| (\w+) \| ([\d.]+) \|$", PAGE)


def probabilities() -> np.ndarray:
    """(16,4): the confidence for the predicted class, the rest in equal parts."""
    result = np.empty((len(ROWS), len(CLASSES)))
    for row, (_, _, predicted, confidence) in zip(result, ROWS, strict=True):
        row[:] = (1 - float(confidence)) / 3
        row[CLASSES.index(predicted)] = float(confidence)
    return result


LABELS = np.array([CLASSES.index(label) for _, label, _, _ in ROWS])
IN = np.array([DOMAINS.index(domain) for domain, _, _, _ in ROWS])
NIGHT = IN == 2


@pytest.fixture(scope="module")
def task() -> Task:
    counts = [[int(n) for n in re.findall(r"\d+", line)] for line in re.findall(r"(?m)^\| (?:day|dusk) \|(.*)$", PAGE)]
    return Task("example", CLASSES, DOMAINS, "night", np.array(counts[:2]))


@pytest.fixture(scope="module")
def metrics(task: Task) -> dict[str, dict[str, float]]:
    logits = np.log(probabilities()).astype(np.float32)
    table = PredictionTable(logits, LABELS, IN, np.arange(len(ROWS)))
    computed = compute_metrics(table, None, task)
    return {"summary": computed["summary"], **computed["per_domain"]}


def value(name: str) -> float:
    """The last cell of the row with this name, as a fraction."""
    (cell,) = re.findall(rf"(?m)^\| \*?\*?{re.escape(name)}\*?\*?(?: .*?)? \| .* \| ([\d.]+) % \|$", PAGE)
    return float(cell) / 100


@pytest.mark.parametrize(
    ("name", "part", "key"),
    [
        ("accuracy in day", "day", "accuracy"),
        ("accuracy in dusk", "dusk", "accuracy"),
        ("Acc-U", "summary", "acc_u"),
        ("Acc", "summary", "acc"),
        ("many", "summary", "many"),
        ("medium", "summary", "medium"),
        ("few", "summary", "few"),
        ("macro accuracy", "summary", "macro_accuracy"),
        ("seen pairs", "summary", "seen_pairs"),
        ("unseen pairs", "summary", "unseen_pairs"),
        ("unseen pairs in sources", "summary", "unseen_pairs_sources"),
        ("H-U (oracle)", "summary", "h_u_oracle"),
        ("AUROC-U", "summary", "auroc_u"),
        ("OSCR-U", "summary", "oscr_u"),
    ],
)
def test_values(metrics: dict[str, dict[str, float]], name: str, part: str, key: str) -> None:
    rows = re.findall(rf"(?m)^\| \*?\*?{re.escape(name)}\*?\*? \| .* \| ([\d.]+) % \|$", PAGE)
    assert len(rows) == 1, name
    assert metrics[part][key] == pytest.approx(float(rows[0]) / 100, abs=5.01e-4)


def test_h_at_a_threshold() -> None:
    a, b = known_and_open_rates(probabilities()[NIGHT], LABELS[NIGHT], [3], 0.5) or (0.0, 0.0)
    assert (a, b) == (3 / 8, 1 / 2)
    assert harmonic(np.array([a]), np.array([b]))[0] == pytest.approx(value("H"), abs=5e-4)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("named right", "named_right"),
        ("wrongly unknown", "known_called_unknown"),
        ("rightly unknown", "open_called_unknown"),
    ],
)
def test_answers_at_a_threshold(task: Task, name: str, key: str) -> None:
    confidence, right = probabilities().max(axis=1), probabilities().argmax(axis=1) == LABELS
    unknown = confidence < 0.5
    counts = [np.bincount(LABELS[NIGHT & mask], minlength=4)[None] for mask in (unknown, right & ~unknown, NIGHT)]
    assert answer_shares(*counts, task)[key] == pytest.approx(value(name), abs=1e-9)


def test_calibration() -> None:
    scores = OpenSetScores.of(probabilities(), LABELS, [3]).where(NIGHT)
    error = expected_calibration_error(scores.confidence[scores.known], scores.correct[scores.known], bins=2)
    assert error == pytest.approx(0.1125)
    assert "= 11.25 %" in PAGE


def test_the_fifth_percentile() -> None:
    text = PAGE.partition("*validation* images, here")[2].partition("Their 5th percentile")[0]
    confidences = np.array([float(number) for number in re.findall(r"0\.\d+", text)])
    every = np.ones(len(confidences), dtype=np.bool_)
    assert percentile_threshold(OpenSetScores(confidences, every, every, ~every), 5.0) == pytest.approx(0.56)
    assert known_and_open_rates(probabilities()[NIGHT], LABELS[NIGHT], [3], 0.56) == (3 / 8, 1 / 2)
