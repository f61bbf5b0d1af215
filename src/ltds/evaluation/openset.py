"""Open-set scores: H with its thresholds, AUROC, OSCR.

Two scores are in use. The paper's is the largest softmax value over all C columns, where a prediction of an open class
counts as "unknown". A deployed model's is the largest logit of a known class: open classes are not predicted at all.
AUROC and OSCR measure how well the paper's score ranks known above open images; the predicted class does not matter
there. H judges decisions. A value is None if there are no known or no open images. Each sweep sorts once: O(N log N).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.arrays import BoolArray, FloatArray, IntArray
from ltds.evaluation.metrics import harmonic

GRID_SIZE = 10
SOFTMAX_PERCENTILE = 5.0


@dataclass(frozen=True)
class OpenSetScores:
    """The predictions of a model for N images, reduced to what open-set metrics need; every array is (N,).

    confidence: the score, higher for images that look known; correct: the predicted class is the label; known: the
    label is not an open class; called_open: the predicted class is an open one.
    """

    confidence: FloatArray
    correct: BoolArray
    known: BoolArray
    called_open: BoolArray

    @classmethod
    def of(cls, probabilities: FloatArray, labels: IntArray, open_classes: Sequence[int]) -> OpenSetScores:
        """The paper's scores, max softmax over all columns, from probabilities (N,C) and labels (N,)."""
        predicted = probabilities.argmax(axis=1)
        is_open = np.zeros(probabilities.shape[1], dtype=np.bool_)
        is_open[list(open_classes)] = True
        confidence = np.take_along_axis(probabilities, predicted[:, None], axis=1)[:, 0]
        return cls(confidence, predicted == labels, ~is_open[labels], is_open[predicted])

    @classmethod
    def of_known_logits(
        cls, logits: NDArray[np.floating], labels: IntArray, open_classes: Sequence[int]
    ) -> OpenSetScores:
        """A deployed model's scores: the largest logit of a known class. logits (N,C), labels (N,)."""
        is_open = np.zeros(logits.shape[1], dtype=np.bool_)
        is_open[list(open_classes)] = True
        known_logits = np.where(is_open, -np.inf, logits)
        predicted = known_logits.argmax(axis=1)
        confidence = np.take_along_axis(known_logits, predicted[:, None], axis=1)[:, 0].astype(np.float64)
        return cls(confidence, predicted == labels, ~is_open[labels], np.zeros(len(labels), dtype=np.bool_))

    def where(self, mask: BoolArray) -> OpenSetScores:
        return OpenSetScores(self.confidence[mask], self.correct[mask], self.known[mask], self.called_open[mask])


def known_and_open_rates(
    probabilities: FloatArray, labels: IntArray, open_classes: Sequence[int], threshold: float
) -> tuple[float, float] | None:
    """(a, b) at one threshold, see `rates`. probabilities (N,C), labels (N,)."""
    both = rates(OpenSetScores.of(probabilities, labels, open_classes), np.array([threshold]))
    return None if both is None else (float(both[0][0]), float(both[1][0]))


def rates(scores: OpenSetScores, thresholds: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """(T,) a: share of known images not flagged and correct; (T,) b: share of open images flagged. thresholds (T,).

    Flagged: confidence < t (strictly), or the argmax is an open class. None without known or without open images.
    """
    known, confidence = scores.known, scores.confidence
    n_known, n_open = np.count_nonzero(known), np.count_nonzero(~known)
    if not n_known or not n_open:
        return None
    # A correct known image never has an open argmax, so only its confidence can flag it.
    right = np.sort(confidence[known & scores.correct])
    unsure = np.sort(confidence[~known & ~scores.called_open])
    kept = len(right) - np.searchsorted(right, thresholds, side="left")
    flagged = (n_open - len(unsure)) + np.searchsorted(unsure, thresholds, side="left")
    return kept / n_known, flagged / n_open


def even_grid(lowest: float, highest: float) -> FloatArray:
    """(10,) thresholds lo + (hi - lo) i / 9, both ends exact, so rounding puts no image above the last."""
    return np.linspace(lowest, highest, GRID_SIZE)


def confidence_grid(confidence: FloatArray) -> FloatArray:
    """(10,) thresholds between the smallest and largest max softmax of the images, as in DAML. confidence (N,)."""
    return even_grid(confidence.min(), confidence.max()) if len(confidence) else np.empty(0)


def released_grid(probabilities: FloatArray) -> FloatArray:
    """(10,) thresholds of the released LT-DS code: from the smallest to the largest entry of the matrix (N,C)."""
    return even_grid(probabilities.min(), probabilities.max()) if probabilities.size else np.empty(0)


def best_h(scores: OpenSetScores, thresholds: FloatArray) -> tuple[float, float] | None:
    """(H, threshold) of the best of these thresholds (T,), the smallest of equally good ones. It uses the labels."""
    both = rates(scores, thresholds)
    if both is None:
        return None
    h = harmonic(*both)
    best = int(h.argmax())
    return float(h[best]), float(thresholds[best])


def optimal_h(scores: OpenSetScores) -> tuple[float, float] | None:
    """(H, threshold) of the best of all thresholds: no rule can do better with these scores. It uses the labels."""
    return best_h(scores, np.append(np.unique(scores.confidence), np.inf))


def percentile_threshold(validation: OpenSetScores, percentile: float) -> float | None:
    """This percentile of the confidence of correctly classified known images; None without such an image.

    Pass scores of source-validation images: then neither test labels nor held-out images are used.
    """
    right = validation.confidence[validation.known & validation.correct]
    return float(np.percentile(right, percentile)) if len(right) else None


def error_rate_threshold(validation: OpenSetScores) -> float | None:
    """The threshold that rejects the same share of correctly classified images as the model misclassifies.

    A model that errs often also scores open images high, so that its threshold must be stricter. Found on one held-out
    domain of two datasets, confirmed on the others: docs/metrics.md.
    """
    known = validation.known
    if not known.any():
        return None
    error = 1 - np.count_nonzero(validation.correct & known) / np.count_nonzero(known)
    return percentile_threshold(validation, 100 * error)


def auroc(scores: OpenSetScores) -> float | None:
    """Probability that a known image has a higher confidence than an open one; ties count half."""
    known, opened = scores.confidence[scores.known], np.sort(scores.confidence[~scores.known])
    if not len(known) or not len(opened):
        return None
    below = np.searchsorted(opened, known, side="left")
    not_above = np.searchsorted(opened, known, side="right")
    return int((below + not_above).sum()) / (2 * len(known) * len(opened))


def oscr(scores: OpenSetScores) -> float | None:
    """Area under (x: share of open images accepted, y: share of known images accepted and correct), by trapezoids.

    The threshold falls from above the largest confidence to below the smallest; equal ones are accepted together.
    """
    curve = oscr_curve(scores)
    if curve is None:
        return None
    x, y = curve
    total = 2 * np.count_nonzero(scores.known) * np.count_nonzero(~scores.known)
    # Integers are exact: dividing last keeps the area from exceeding 1 by rounding.
    return int((np.diff(x) * (y[1:] + y[:-1])).sum()) / total


def oscr_curve(scores: OpenSetScores) -> tuple[IntArray, IntArray] | None:
    """(L+1,) open images accepted, (L+1,) known images accepted and correct, after 0, 1, ... of L distinct values."""
    known = scores.known
    if known.all() or not known.any():
        return None
    values, level = np.unique(-scores.confidence, return_inverse=True)
    return _accepted(level[~known], len(values)), _accepted(level[known & scores.correct], len(values))


def _accepted(levels: NDArray[np.intp], size: int) -> IntArray:
    """(size+1,) how many images are accepted after 0, 1, ... levels. levels (M,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(levels, minlength=size))])
