"""Open-set scores: H with its thresholds, AUROC, OSCR.

Two scores are in use. The paper's is the largest softmax value over all C columns, where a prediction of an open class
counts as "unknown". A deployed model's is the largest softmax value over the known classes, with the logits rescaled by
a temperature: open classes are not predicted at all. It is called the softened confidence, though a temperature below 1
sharpens it.
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
SOFTENING = 0.25  # the temperature, in standard deviations of the logits of an image
CAUTION = 2  # how much more a rejected image of a known class counts than an accepted one of a struck-out class
FEWEST_REJECTED = 0.08  # share of the correctly classified validation images that are below the smallest threshold
WIDEST_GAP = 32.0  # between rescaled logits: beyond 36.7 the score is exactly 1 in float64


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
    def of_known_classes(
        cls, logits: NDArray[np.floating], labels: IntArray, open_classes: Sequence[int], temperature: float
    ) -> OpenSetScores:
        """A deployed model's scores: the rescaled confidence over the known classes. logits (N,C), labels (N,)."""
        known_logits = without_open(logits, open_classes)
        is_open = np.isin(labels, list(open_classes))
        confidence = softened_confidence(known_logits, temperature)
        nothing_called_open = np.zeros(len(labels), dtype=np.bool_)
        return cls(confidence, known_logits.argmax(axis=1) == labels, ~is_open, nothing_called_open)

    def where(self, mask: BoolArray) -> OpenSetScores:
        return OpenSetScores(self.confidence[mask], self.correct[mask], self.known[mask], self.called_open[mask])


@dataclass(frozen=True)
class AnswerShares:
    """What a model answers at one threshold: shares of the known images, or of the open ones; None without any."""

    named_right: float | None
    known_called_unknown: float | None
    open_called_unknown: float | None


def answers_at(scores: OpenSetScores, threshold: float) -> AnswerShares:
    """An image is called unknown if its score is below the threshold, and otherwise by its predicted class."""
    unknown, known = scores.confidence < threshold, scores.known
    shares = (scores.correct & ~unknown)[known], unknown[known], unknown[~known]
    return AnswerShares(*(float(hits.mean()) if len(hits) else None for hits in shares))


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


def without_open(logits: NDArray[np.floating], open_classes: Sequence[int]) -> FloatArray:
    """(N,C) the logits in float64, with -inf for open classes."""
    is_open = np.isin(np.arange(logits.shape[1]), list(open_classes))
    return np.where(is_open, -np.inf, logits.astype(np.float64))


def softening_temperature(known_logits: FloatArray) -> float:
    """SOFTENING times the standard deviation of an image's logits, on average over images. (N,C), -inf left out.

    With hundreds of classes, one logit far above the others hardly adds to that, and nearly all scores would be exactly
    1, the threshold, too: no image would be rejected. So the temperature is at least so high that the median gap
    between the two largest logits of an image is WIDEST_GAP once they are rescaled. Scores above that still run into 1.
    """
    finite = np.isfinite(known_logits)
    if not finite.any():
        return 1.0
    spread = float(np.mean(np.std(known_logits, axis=1, where=finite)))
    return max(SOFTENING * spread, _median_gap(known_logits) / WIDEST_GAP) if spread > 0 else 1.0


def _median_gap(known_logits: FloatArray) -> float:
    """The median over images of the gap between the two largest logits (N,C); 0 if none has two."""
    two = np.partition(known_logits, -2, axis=1)[:, -2:] if known_logits.shape[1] > 1 else np.empty((0, 2))
    gaps = two[np.isfinite(two).all(axis=1)]
    return float(np.median(gaps[:, 1] - gaps[:, 0])) if len(gaps) else 0.0


def softened_confidence(known_logits: FloatArray, temperature: float) -> FloatArray:
    """(N,) the largest softmax value of the logits (N,C) divided by the temperature; 0 where all of them are -inf."""
    largest = known_logits.max(axis=1, keepdims=True)
    shifted = known_logits - np.where(np.isfinite(largest), largest, 0.0)
    return np.where(np.isfinite(largest[:, 0]), 1 / np.maximum(np.exp(shifted / temperature).sum(axis=1), 1.0), 0.0)


def struck_out_threshold(known_logits: FloatArray, labels: IntArray, temperature: float) -> float | None:
    """The threshold that validation images justify; each of them also plays an unknown one. None if none is correct.

    An image whose own class is struck out, as if the model did not know it, should be rejected; a correctly classified
    one should not. The threshold is where CAUTION times the share of correct images that are rejected comes nearest to
    the share of struck-out images that are accepted. Rejections count more, because scores fall in a new domain. Where
    struck-out images are easier to recognise than really unknown ones, this would reject too few; so the threshold is
    at least the 8th percentile of the scores of correct images. If one of two known classes is struck out, the score of
    the other is always 1 and says nothing: then the threshold is that percentile. How the rule was found and where it
    was confirmed: docs/metrics.md. known_logits (N,C), labels (N,) of known classes.
    """
    correct = known_logits.argmax(axis=1) == labels
    if not correct.any():
        return None
    struck = known_logits.copy()
    struck[np.arange(len(labels)), labels] = -np.inf
    right = np.sort(softened_confidence(known_logits[correct], temperature))
    struck = struck[np.isfinite(struck).sum(axis=1) > 1]
    if not len(struck):
        return float(np.quantile(right, FEWEST_REJECTED))
    unknown = np.sort(softened_confidence(struck, temperature))
    thresholds = np.unique(np.concatenate([right, unknown]))
    rejected = np.searchsorted(right, thresholds, side="left")
    accepted = len(unknown) - np.searchsorted(unknown, thresholds, side="left")
    gap = np.abs(CAUTION * rejected * len(unknown) - accepted * len(right))  # of the shares, in exact integers
    return float(max(thresholds[gap.argmin()], np.quantile(right, FEWEST_REJECTED)))


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
