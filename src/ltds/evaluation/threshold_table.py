"""What a model would say of the same images at other thresholds for "unknown"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ltds.core.text import score_text
from ltds.evaluation.arrays import FloatArray
from ltds.evaluation.openset import OpenSetScores, answers_at

KNOWN_BELOW = (0.05, 0.1, 0.2, 0.3, 0.5)  # shares of the images of known classes that lose their class
OPEN_BELOW = (0.5, 0.7, 0.8, 0.9, 0.95)  # shares of the images of open classes that are found


def threshold_table(scores: OpenSetScores, in_use: float | None) -> list[dict[str, Any]]:
    """Shares with their images at the threshold in use, and at quantiles of the scores of known and of open images.

    Quantiles are rounded to what people type. A share without images is None.
    """
    known, opened = scores.confidence[scores.known], scores.confidence[~scores.known]
    images = {"known_images": len(known), "open_images": len(opened)}
    thresholds = {*_rounded(known, KNOWN_BELOW), *_rounded(opened, OPEN_BELOW)}
    return [
        {"threshold": threshold, **images, **asdict(answers_at(scores, threshold))}
        for threshold in sorted(thresholds if in_use is None else {*thresholds, in_use})
    ]


def _rounded(scores: FloatArray, shares: Sequence[float]) -> list[float]:
    return [float(score_text(score)) for score in np.quantile(scores, shares)] if len(scores) else []
