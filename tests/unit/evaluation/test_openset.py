from __future__ import annotations

import metrics_reference as slow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ltds.evaluation import metrics, openset
from ltds.evaluation.openset import OpenSetScores


@st.composite
def scored(draw):
    """Probabilities (N,C) of few distinct values, so that ties are the rule; labels; one or two open classes."""
    n, classes = draw(st.integers(2, 30)), draw(st.integers(2, 5))
    weights = st.lists(st.integers(1, 4), min_size=classes, max_size=classes)
    p = np.array([draw(weights) for _ in range(n)], dtype=np.float64)
    labels = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    opened = tuple(draw(st.sets(st.integers(0, classes - 1), min_size=1, max_size=min(2, classes - 1))))
    return p / p.sum(axis=1, keepdims=True), labels, opened


def split(p, labels, opened):
    known = ~np.isin(labels, opened)
    score, right = p.max(axis=1), p.argmax(axis=1) == labels
    return score[known].tolist(), right[known].tolist(), score[~known].tolist()


@settings(max_examples=80, deadline=None)
@given(scored(), st.floats(0, 1))
def test_agrees_with_slow_twins(case, threshold):
    p, labels, opened = case
    scores = OpenSetScores.of(p, labels, opened)
    known, right, unknown = split(p, labels, opened)
    plain = p.tolist(), labels.tolist(), set(opened)
    a, b = slow.known_and_open_rates(*plain, threshold)
    fast = openset.known_and_open_rates(p, labels, opened, threshold)
    assert fast == (None if a is None or b is None else pytest.approx((a, b)))
    for grid, slow_grid in (
        (openset.confidence_grid(scores.confidence), slow.daml_grid(p.tolist())),
        (openset.released_grid(p), slow.released_grid(p.tolist())),
    ):
        np.testing.assert_allclose(grid, slow_grid, rtol=1e-14)
        best = openset.best_h(scores, grid)
        assert (best and best[0]) == pytest.approx(slow.best_h(*plain, grid.tolist()))
    assert openset.oscr(scores) == pytest.approx(slow.oscr(known, right, unknown))
    assert openset.auroc(scores) == pytest.approx(slow.auroc(known, unknown))


@settings(max_examples=60, deadline=None)
@given(scored())
def test_auroc_agrees_with_scikit_learn_ties_included(case):
    p, labels, opened = case
    scores = OpenSetScores.of(p, labels, opened)
    if scores.known.all() or not scores.known.any():
        assert openset.auroc(scores) is None
    else:
        assert openset.auroc(scores) == pytest.approx(roc_auc_score(scores.known, scores.confidence), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(scored(), st.randoms(use_true_random=False))
def test_order_does_not_matter(case, random):
    p, labels, opened = case
    order = np.array(random.sample(range(len(labels)), len(labels)))
    for measure in (openset.auroc, openset.oscr, lambda v: openset.best_h(v, openset.confidence_grid(v.confidence))):
        assert measure(OpenSetScores.of(p[order], labels[order], opened)) == measure(
            OpenSetScores.of(p, labels, opened)
        )


def test_threshold_is_strict_and_an_open_argmax_flags():
    p = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.0, 0.9]])
    labels = np.array([0, 2, 2])
    assert openset.known_and_open_rates(p, labels, (2,), 0.6) == (1.0, 1.0)
    assert openset.known_and_open_rates(p, labels, (2,), 0.5) == (1.0, 0.5)
    assert openset.known_and_open_rates(p, labels, (2,), 0.7) == (0.0, 1.0)


def test_perfect_separation_gives_one_and_all_ties_the_diagonal():
    known, correct = np.array([True] * 4 + [False] * 2), np.array([True] * 4 + [False] * 2)
    never = np.zeros(6, dtype=bool)
    apart = OpenSetScores(np.array([0.9, 0.8, 0.9, 0.7, 0.2, 0.3]), correct, known, never)
    assert (openset.auroc(apart), openset.oscr(apart)) == (1.0, 1.0)
    tied = OpenSetScores(np.full(6, 0.5), correct, known, never)
    assert (openset.auroc(tied), openset.oscr(tied)) == (0.5, 0.5)


def test_areas_never_exceed_one_by_rounding():
    for n in range(3, 60):
        score = np.concatenate([np.linspace(0.6, 0.9, n), np.linspace(0.1, 0.5, n + 1)])
        known = np.arange(2 * n + 1) < n
        scores = OpenSetScores(score, known, known, np.zeros_like(known))
        assert (openset.auroc(scores), openset.oscr(scores)) == (1.0, 1.0)


def test_wrongly_classified_known_images_do_not_count_for_oscr():
    known = np.array([True, True, False])
    scores = OpenSetScores(np.array([0.9, 0.8, 0.1]), np.array([True, False, False]), known, np.zeros(3, dtype=bool))
    assert openset.auroc(scores) == 1.0
    assert openset.oscr(scores) == 0.5


def test_all_images_called_known_gives_h_zero():
    p = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.9, 0.1, 0.0]])
    assert openset.best_h(OpenSetScores.of(p, np.array([0, 1, 2]), (2,)), np.array([0.0]))[0] == 0.0


def test_the_last_threshold_is_the_largest_score():
    """lo + (hi - lo) * 9 / 9 may round above hi, which would flag every image."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        score = rng.random(5)
        grid = openset.confidence_grid(score)
        assert grid[0] == score.min()
        assert grid[-1] == score.max()


def test_undefined_without_open_or_without_known_images():
    p = np.array([[0.7, 0.3], [0.2, 0.8]])
    for opened in ((), (0, 1)):
        scores = OpenSetScores.of(p, np.array([0, 1]), opened)
        assert openset.rates(scores, np.array([0.5])) is None
        assert openset.best_h(scores, openset.confidence_grid(scores.confidence)) is None
        assert openset.auroc(scores) is None
        assert openset.oscr(scores) is None
        assert openset.known_and_open_rates(p, np.array([0, 1]), opened, 0.5) is None


def test_fixed_threshold_is_the_percentile_of_correct_known_scores():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), size=200)
    labels = rng.integers(0, 4, size=200)
    scores = OpenSetScores.of(p, labels, (3,))
    chosen = [max(row) for row, y in zip(p, labels, strict=True) if y != 3 and row.argmax() == y]
    assert openset.percentile_threshold(scores, 5) == pytest.approx(slow.percentile(chosen, 5), abs=1e-12)
    assert openset.percentile_threshold(scores.where(~scores.correct), 5) is None


def test_softened_confidence_is_the_softmax_over_known_classes_at_the_temperature():
    logits = np.array([[2.0, 0.0, 9.0, -np.inf], [0.0, 0.0, 0.0, 0.0]])
    known = openset.without_open(logits, (2,))
    assert openset.softened_confidence(known, 2.0).tolist() == pytest.approx([np.e / (np.e + 1), 1 / 3])
    assert openset.softening_temperature(known) == pytest.approx(0.25 * (1.0 + 0.0) / 2), "-inf takes no part"
    assert openset.softening_temperature(known[1:]) == 1.0, "equal logits have no spread"
    assert openset.softened_confidence(np.full((1, 3), -np.inf), 1.0).tolist() == [0.0]


def test_the_fixed_threshold_by_hand():
    """Four correct images with own-class logits 4, 3, 2, 1; with it struck out, the runner-up has 0, 0, 0 and .9."""
    logits = np.array([[4.0, 0, 0], [3.0, 0, 0], [2.0, 0, 0], [1.0, 0.9, 0]])
    labels = np.zeros(4, dtype=np.int64)
    right = openset.softened_confidence(logits, 1.0)
    unknown = openset.softened_confidence(logits[:, 1:], 1.0)
    assert sorted([*right, *unknown])[:4] == pytest.approx([right[3], 0.5, 0.5, 0.5])
    # At .5 one of four right images is below, all struck-out images are accepted: |2/4 - 1| = 1/2.
    # At .711, the struck-out image with .9: one of four rejected, one of four accepted: |2/4 - 1/4| = 1/4.
    # At .787, the right image with 2: one of four rejected, none accepted: |2/4 - 0| = 1/2.
    assert unknown[3] == pytest.approx(1 / (1 + np.exp(-0.9)))
    assert openset.struck_out_threshold(logits, labels, 1.0) == pytest.approx(unknown[3])
    assert openset.struck_out_threshold(logits, labels + 1, 1.0) is None, "no image is right"


def test_some_of_the_correct_images_are_always_rejected():
    """Struck-out images score 1/2, correct ones more: the balance alone would reject none."""
    logits = np.column_stack([np.linspace(3.0, 6.0, 26), np.zeros((26, 2))])
    labels = np.zeros(26, dtype=np.int64)
    right = openset.softened_confidence(logits, 1.0)
    assert right.min() > openset.softened_confidence(logits[:, 1:], 1.0).max()
    threshold = openset.struck_out_threshold(logits, labels, 1.0)
    assert threshold == pytest.approx(right[2]), "the 8th percentile: two of 26 are below"


@pytest.mark.parametrize("gap", [10.0, 1e30])
def test_with_a_thousand_classes_the_scores_are_not_all_one(gap):
    """The gap is 92 times a quarter of the standard deviation of the logits, so the score would be exactly 1."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 1000, 500)
    logits = rng.normal(0, 0.03 * gap, (500, 1000))
    logits[np.arange(500), labels] += gap
    temperature = openset.softening_temperature(logits)
    two = np.sort(logits, axis=1)[:, -2:]
    assert temperature == pytest.approx(np.median(two[:, 1] - two[:, 0]) / 32)
    threshold = openset.struck_out_threshold(logits, labels, temperature)
    scores = openset.softened_confidence(logits, temperature)
    assert threshold < 1
    assert np.count_nonzero(scores < threshold) == 40, "the 8th percentile"


def test_the_temperature_of_few_classes_is_a_quarter_of_the_spread():
    logits = np.zeros((9, 60))
    logits[:, 3] = 1000.0
    assert openset.softening_temperature(logits) == pytest.approx(0.25 * logits[0].std())
    assert openset.softening_temperature(np.full((4, 1), 3.0)) == 1.0
    hidden = np.column_stack([logits[:, 3], np.full((9, 2), -np.inf)])
    assert openset.softening_temperature(hidden) == 1.0, "one known class has no gap"


@pytest.mark.parametrize("open_columns", [0, 1])
def test_with_two_known_classes_what_is_struck_out_says_nothing(open_columns):
    """One class is left, whose score is always 1; the balance would reject half of the images that are right."""
    rng = np.random.default_rng(0)
    labels = np.arange(50) % 2
    logits = np.column_stack([labels == 0, labels == 1]) * rng.uniform(1, 9, (50, 1))
    known = np.column_stack([logits, np.full((50, open_columns), -np.inf)])
    threshold = openset.struck_out_threshold(known, labels, 1.0)
    right = openset.softened_confidence(logits, 1.0)
    assert threshold == np.quantile(right, 0.08)
    assert np.count_nonzero(right < threshold) == 4


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_the_fixed_threshold_is_that_of_slow_loops(seed):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(size=(30, 4)), rng.integers(0, 4, 30)
    temperature = openset.softening_temperature(logits)
    threshold = openset.struck_out_threshold(logits, labels, temperature)
    values = [slow.softmax([v / temperature for v in row]) for row in logits]
    right = [max(v) for v, y in zip(values, labels, strict=True) if slow.first_argmax(v) == y]
    struck = [[v / temperature for c, v in enumerate(row) if c != y] for row, y in zip(logits, labels, strict=True)]
    unknown = [max(slow.softmax(row)) for row in struck]
    assert threshold == (pytest.approx(slow.balanced_threshold(right, unknown, 2, 8)) if right else None)


def test_the_best_possible_h_is_never_below_any_threshold():
    rng = np.random.default_rng(3)
    for _ in range(50):
        logits, labels = rng.normal(size=(40, 4)).round(1), rng.integers(0, 4, 40)
        scores = openset.OpenSetScores.of_known_classes(logits, labels, (3,), 1.0)
        best = openset.optimal_h(scores)
        others = [openset.best_h(scores, np.array([t]))[0] for t in rng.uniform(size=30)]
        assert best[0] >= max(others)
        assert best[0] == openset.best_h(scores, np.array([best[1]]))[0]


def test_empty_input_is_undefined_not_an_error():
    scores = OpenSetScores.of(np.empty((0, 3)), np.empty(0, dtype=np.int64), (2,))
    assert openset.best_h(scores, openset.confidence_grid(scores.confidence)) is None
    assert openset.released_grid(np.empty((0, 3))).shape == (0,)
    assert metrics.expected_calibration_error(scores.confidence, scores.correct) is None
