"""Telling images of open classes from known ones: H with its thresholds, AUROC, OSCR.

Scores are the plain max softmax over all C columns. AUROC and OSCR ask how well that score alone ranks known above open
images, so an argmax in the open set changes nothing there; H, which judges decisions, counts it as "unknown".
What is undefined (no known or no open image) is None. All sweeps sort once: O(N log N).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.metrics import Floats, Ints, Mask, harmonic

GRID_SIZE = 10
FIXED_PERCENTILE = 5.0


@dataclass(frozen=True)
class Verdicts:
    """What a model said of N images, as far as open classes are concerned; every column (N,).

    score: max softmax; correct: argmax is the label; known: the label is not open; called_open: the argmax is open.
    """

    score: Floats
    correct: Mask
    known: Mask
    called_open: Mask

    @classmethod
    def of(cls, probabilities: Floats, labels: Ints, open_classes: Sequence[int]) -> Verdicts:
        """Verdicts of probabilities (N,C) on labels (N,)."""
        predicted = probabilities.argmax(axis=1)
        is_open = np.zeros(probabilities.shape[1], dtype=np.bool_)
        is_open[list(open_classes)] = True
        score = np.take_along_axis(probabilities, predicted[:, None], axis=1)[:, 0]
        return cls(score, predicted == labels, ~is_open[labels], is_open[predicted])

    def where(self, mask: Mask) -> Verdicts:
        return Verdicts(self.score[mask], self.correct[mask], self.known[mask], self.called_open[mask])


def known_and_open_rates(
    probabilities: Floats, labels: Ints, open_classes: Sequence[int], threshold: float
) -> tuple[float, float] | None:
    """(a, b) of METHODS 0.4 at one threshold, see `rates`. probabilities (N,C), labels (N,)."""
    both = rates(Verdicts.of(probabilities, labels, open_classes), np.array([threshold]))
    return None if both is None else (float(both[0][0]), float(both[1][0]))


def rates(verdicts: Verdicts, thresholds: Floats) -> tuple[Floats, Floats] | None:
    """(T,) a: share of known images not flagged and correct; (T,) b: share of open images flagged. thresholds (T,).

    Flagged = score < t (strictly) or the argmax is an open class. None without known or without open images.
    """
    known, score = verdicts.known, verdicts.score
    n_known, n_open = np.count_nonzero(known), np.count_nonzero(~known)
    if not n_known or not n_open:
        return None
    # A correct known image never has an open argmax, so only its score can flag it.
    right = np.sort(score[known & verdicts.correct])
    unsure = np.sort(score[~known & ~verdicts.called_open])
    kept = len(right) - np.searchsorted(right, thresholds, side="left")
    flagged = (n_open - len(unsure)) + np.searchsorted(unsure, thresholds, side="left")
    return kept / n_known, flagged / n_open


def even_grid(lowest: float, highest: float) -> Floats:
    """(10,) thresholds lo + (hi - lo) i / 9, both ends exact, so that no image lies above the last by rounding."""
    return np.linspace(lowest, highest, GRID_SIZE)


def score_grid(score: Floats) -> Floats:
    """(10,) thresholds between the smallest and largest max softmax of the evaluated images (DAML). score (N,)."""
    return even_grid(score.min(), score.max()) if len(score) else np.empty(0)


def released_grid(probabilities: Floats) -> Floats:
    """(10,) thresholds of the released LT-DS code: from the smallest entry of the whole matrix (N,C) to its largest."""
    return even_grid(probabilities.min(), probabilities.max()) if probabilities.size else np.empty(0)


def best_h(verdicts: Verdicts, thresholds: Floats) -> tuple[float, float] | None:
    """(H, threshold) of the best threshold, the smallest of equals: an oracle, as labels choose it. thresholds (T,)."""
    both = rates(verdicts, thresholds)
    if both is None:
        return None
    h = harmonic(*both)
    best = int(h.argmax())
    return float(h[best]), float(thresholds[best])


def fixed_threshold(validation: Verdicts) -> float | None:
    """The 5th percentile of the scores of correctly classified known images; None where there is no such image.

    Give it source-validation images: then no test label, and no image of the held-out domain, takes part.
    """
    right = validation.score[validation.known & validation.correct]
    return float(np.percentile(right, FIXED_PERCENTILE)) if len(right) else None


def auroc(verdicts: Verdicts) -> float | None:
    """Chance that a known image scores above an open one, ties counting half."""
    known, opened = verdicts.score[verdicts.known], np.sort(verdicts.score[~verdicts.known])
    if not len(known) or not len(opened):
        return None
    below = np.searchsorted(opened, known, side="left")
    not_above = np.searchsorted(opened, known, side="right")
    return int((below + not_above).sum()) / (2 * len(known) * len(opened))


def oscr(verdicts: Verdicts) -> float | None:
    """Area under (x: share of open images accepted, y: share of known images accepted and correct), by trapezoids.

    The threshold falls from above the largest score to below the smallest; images of equal score enter together.
    """
    curve = oscr_curve(verdicts)
    if curve is None:
        return None
    x, y = curve
    total = 2 * np.count_nonzero(verdicts.known) * np.count_nonzero(~verdicts.known)
    # Counts, divided last: whole numbers are exact, so that the area never exceeds 1 by rounding.
    return int((np.diff(x) * (y[1:] + y[:-1])).sum()) / total


def oscr_curve(verdicts: Verdicts) -> tuple[Ints, Ints] | None:
    """(L+1,) open images accepted, (L+1,) known images accepted and correct, after 0, 1, ... of L distinct scores."""
    known = verdicts.known
    if known.all() or not known.any():
        return None
    values, level = np.unique(-verdicts.score, return_inverse=True)
    return _entered(level[~known], len(values)), _entered(level[known & verdicts.correct], len(values))


def _entered(levels: NDArray[np.intp], size: int) -> Ints:
    """(size+1,) how many images have entered after 0, 1, ... levels. levels (M,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(levels, minlength=size))])
