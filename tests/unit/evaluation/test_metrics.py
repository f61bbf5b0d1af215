from __future__ import annotations

import warnings

import metrics_reference as slow
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from ltds.evaluation import metrics


@st.composite
def classified(draw):
    n, classes, domains = draw(st.integers(1, 40)), draw(st.integers(2, 6)), draw(st.integers(1, 3))
    column = lambda size: np.array(draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n)))  # noqa: E731
    return column(classes), column(classes), column(domains), (domains, classes)


@settings(max_examples=60, deadline=None)
@given(classified())
def test_agrees_with_scikit_learn(case):
    predicted, labels, domains, shape = case
    hits, images = metrics.pair_counts(predicted == labels, labels, domains, shape)
    assert metrics.accuracy(hits, images) == pytest.approx(accuracy_score(labels, predicted), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn remarks on predicted classes without images
        balanced = balanced_accuracy_score(labels, predicted)
    assert metrics.macro_accuracy(hits, images) == pytest.approx(balanced, abs=1e-12)
    for d in range(shape[0]):
        mine = metrics.accuracy(hits[d], images[d])
        here = domains == d
        assert mine == (pytest.approx(accuracy_score(labels[here], predicted[here])) if here.any() else None)


def test_pair_counts_by_hand():
    labels, domains = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0])
    hits, images = metrics.pair_counts(np.array([True, False, True, True, False]), labels, domains, (2, 3))
    assert hits.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert images.tolist() == [[1, 0, 2], [1, 1, 0]]
    assert metrics.accuracies(hits[0], images[0]) == [1.0, None, 0.5]
    assert metrics.macro_accuracy(hits, images) == pytest.approx((0.5 + 1 + 0.5) / 3)


def test_nothing_is_none_not_zero():
    empty = np.zeros((2, 3), dtype=np.int64)
    assert metrics.accuracy(empty, empty) is None
    assert metrics.macro_accuracy(empty, empty) is None
    assert metrics.mean([None, None]) is None
    assert metrics.mean([None, 0.0, 1.0]) == 0.5
    assert metrics.expected_calibration_error(np.empty(0), np.empty(0, dtype=bool)) is None


confidences = st.one_of(st.floats(0.05, 1.0), st.integers(1, 15).map(lambda i: i / 15))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(confidences, st.booleans()), min_size=1, max_size=40))
def test_calibration_error_agrees_with_its_slow_twin(images):
    confidence, correct = zip(*images, strict=True)
    fast = metrics.expected_calibration_error(np.array(confidence), np.array(correct))
    assert fast == pytest.approx(slow.calibration_error(confidence, correct), abs=1e-12)


def test_calibration_error_by_hand():
    # Two images at 0.9, one right: |0.5 - 0.9| = 0.4 for 2 of 3; one at 0.5, right: 0.5 for 1 of 3.
    error = metrics.expected_calibration_error(np.array([0.9, 0.9, 0.5]), np.array([True, False, True]))
    assert error == pytest.approx((2 * 0.4 + 0.5) / 3)
    # The bin's right edge belongs to it: 1/15 and 2/15 are in different bins, so the errors cannot cancel.
    edges = metrics.expected_calibration_error(np.array([1 / 15, 2 / 15]), np.array([False, True]))
    assert edges == pytest.approx((1 / 15 + 13 / 15) / 2)


def test_harmonic():
    a, b = np.array([0.0, 0.5, 0.6, 1.0, 0.0]), np.array([0.0, 0.5, 0.3, 0.0, 1.0])
    np.testing.assert_allclose(metrics.harmonic(a, b), [0, 0.5, 0.4, 0, 0])
