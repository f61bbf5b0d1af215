"""The worked examples `h_score` and `ova_and_oscr` of docs/metrics.md."""

from __future__ import annotations

import json
from pathlib import Path

import metrics_reference as slow
import numpy as np
import pytest

from ltds.core.task import Task
from ltds.evaluation import metrics, openset
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.protocol import compute_metrics
from ltds.evaluation.table import PredictionTable

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


def example(name):
    if not FILE.is_file():
        pytest.skip(f"the worked examples are not beside the repository ({FILE.parent.name}/{FILE.name})")
    return json.loads(FILE.read_text())["examples"][name]


@pytest.fixture
def h_score():
    fixture = example("h_score")
    inputs = fixture["inputs"]
    return np.array(inputs["probs"]), np.array(inputs["labels"]), np.array(inputs["domains"]), fixture["expected"]


def sweep(p, labels, opened, grid):
    a, b = openset.rates(OpenSetScores.of(p, labels, opened), grid)
    return np.stack([grid, a, b, metrics.harmonic(a, b)], axis=1)


def test_every_row_of_both_grids(h_score):
    p, labels, _, expected = h_score
    np.testing.assert_allclose(sweep(p, labels, (3,), openset.confidence_grid(p.max(axis=1))), expected["grid_daml"])
    np.testing.assert_allclose(sweep(p, labels, (3,), openset.released_grid(p)), expected["grid_released_code"])


def test_two_open_classes(h_score):
    p, labels, _, expected = h_score
    grid = openset.confidence_grid(p.max(axis=1))
    np.testing.assert_allclose(sweep(p, labels, (2, 3), grid), expected["open_classes_2_and_3_daml_grid"])
    best = openset.best_h(OpenSetScores.of(p, labels, (2, 3)), grid)
    assert best[0] == pytest.approx(expected["open_classes_2_and_3_best_H"])
    only_first = openset.best_h(OpenSetScores.of(p, labels, (2,)), grid)
    assert only_first[0] == pytest.approx(expected["open_classes_2_and_3_released_code_keeps_only_2"])


def test_best_h_takes_the_smallest_of_equal_thresholds(h_score):
    p, labels, _, expected = h_score
    scores = OpenSetScores.of(p, labels, (3,))
    assert openset.best_h(scores, openset.confidence_grid(scores.confidence)) == pytest.approx(
        (expected["best_H_daml_grid"], 0.45333333333333337)
    )
    assert openset.best_h(scores, openset.released_grid(p)) == pytest.approx(
        (expected["best_H_released_code"], 0.4666666666666667)
    )


def test_one_fixed_threshold(h_score):
    p, labels, _, expected = h_score
    threshold, a, b, h = expected["fixed_threshold_0.35"]
    assert openset.known_and_open_rates(p, labels, (3,), threshold) == pytest.approx((a, b))
    assert openset.best_h(OpenSetScores.of(p, labels, (3,)), np.array([threshold]))[0] == pytest.approx(h)
    assert slow.known_and_open_rates(p.tolist(), labels.tolist(), {3}, threshold) == pytest.approx((a, b))
    h_of = metrics.harmonic(np.array([0.6, 0.0]), np.array([0.3, 0.0]))
    np.testing.assert_allclose(h_of, [expected["h_of_0.6_and_0.3"], 0.0])


def test_accuracy_is_a_mean_over_domains_not_over_images(h_score):
    p, labels, domains, expected = h_score
    task = Task("fixture", ("a", "b", "c", "d"), ("one", "two"), "two", np.array([[5, 5, 5, 0]]))
    table = PredictionTable(np.log(p).astype(np.float32), labels, domains, np.arange(len(labels)))
    result = compute_metrics(table, None, task)
    assert [result["per_domain"][d]["accuracy"] for d in ("one", "two")] == expected["acc_per_domain_non_open"]
    assert result["summary"]["acc"] == pytest.approx(expected["Acc_domain_mean"])
    assert result["summary"]["accuracy"] == pytest.approx(expected["Acc_pooled"])
    assert result["summary"]["acc_u"] == expected["acc_per_domain_non_open"][1]
    assert result["summary"]["h_oracle"] == pytest.approx(expected["best_H_daml_grid"])
    assert result["summary"]["h_released"] == pytest.approx(expected["best_H_released_code"])


def test_oscr():
    fixture = example("ova_and_oscr")
    inputs, expected = fixture["inputs"], fixture["expected"]["oscr"]
    known, unknown = inputs["conf_known"], inputs["conf_unknown"]
    correct = np.array([*inputs["known_correct"], *[0] * len(unknown)], dtype=bool)
    is_known = np.arange(len(correct)) < len(known)
    scores = OpenSetScores(np.array([*known, *unknown]), correct, is_known, np.zeros_like(is_known))
    assert openset.oscr(scores) == pytest.approx(expected)
    assert slow.oscr(known, inputs["known_correct"], unknown) == pytest.approx(expected)
