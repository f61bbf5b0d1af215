"""Reliability: are predictions with a confidence of 80 % correct in 80 of 100 cases?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.arrays import FloatArray, IntArray
from ltds.evaluation.metrics import calibration_bins, expected_calibration_error
from ltds.evaluation.openset import OpenSetScores
from ltds.reporting.figures.canvas import COLOURS, GREY, INK, PALE, clean_axes, new_figure, shortened
from ltds.reporting.figures.context import FigureContext, run_note
from ltds.reporting.figures.drawing import OPEN_CLASSES, Drawing
from ltds.reporting.figures.inline import tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 3.0  # points within which confidence is called about right


@dataclass(frozen=True)
class ReliabilityBins:
    """Images (B,) in B equally wide bins of confidence, their mean confidence and accuracy (B,); NaN in empty bins."""

    images: IntArray
    confidence: FloatArray
    accuracy: FloatArray
    ece: float


def draw(context: FigureContext) -> Iterator[Drawing]:
    computed = {label: reliability_bins(scores) for label, scores in context.open_set_scores.items()}
    cases = {label: case for label, case in computed.items() if case}
    if cases:
        yield Drawing(
            reliability(cases),
            "Reliability",
            "Below the dashed line, the model is right less often than it claims (overconfident); above it, more often "
            f"(underconfident). {' '.join(_claim(*item) for item in cases.items())} {run_note(context.compared_runs)}",
            "; ".join(f"{label}: ECE {100 * case.ece:.1f} %" for label, case in cases.items()) + ".",
            OPEN_CLASSES,
        )


def _claim(label: str, case: ReliabilityBins) -> str:
    """Mean confidence against accuracy in one sentence."""
    full = case.images > 0
    shares = case.images[full] / case.images.sum()
    claimed, right = (100 * float((shares * of[full]).sum()) for of in (case.confidence, case.accuracy))
    gap = claimed - right
    word = "about right" if abs(gap) <= LEVEL else "overconfident" if gap > 0 else "underconfident"
    return f"{label} claims {claimed:.0f} % on average and is right for {right:.0f} %: {word}."


def reliability_bins(scores: OpenSetScores) -> ReliabilityBins | None:
    """Bins of confidence over images of known classes, the same as for the metric ECE; None without such images."""
    confidence, correct = scores.confidence[scores.known], scores.correct[scores.known]
    ece = expected_calibration_error(confidence, correct)
    if ece is None:
        return None
    images, confidence_sum, correct_count = calibration_bins(confidence, correct)
    count = np.where(images > 0, images, np.nan)
    return ReliabilityBins(images, confidence_sum / count, correct_count / count, ece)


def reliability(cases: Mapping[str, ReliabilityBins]) -> Figure:
    """A panel for each method: bars of accuracy, a mark at the mean confidence of each bin, and images per bin."""
    figure = new_figure(max(4.5, 2.9 * len(cases)), 3.7)
    upper, lower = figure.subplots(2, len(cases), squeeze=False, sharex=True, height_ratios=[3, 1])
    for i, (method, case) in enumerate(cases.items()):
        bins = len(case.images)
        middles = (np.arange(bins) + 0.5) / bins
        full = np.flatnonzero(case.images)
        axes = upper[i]
        clean_axes(axes)
        axes.plot([0, 1], [0, 100], color=GREY, linewidth=0.9, linestyle="--")
        axes.bar(middles[full], case.accuracy[full] * 100, width=0.85 / bins, color=COLOURS[0], alpha=0.75)
        gap = (case.accuracy[full] * 100, case.confidence[full] * 100)
        axes.vlines(case.confidence[full], *gap, color=COLOURS[1], linewidth=1.4)
        axes.plot(case.confidence[full], case.confidence[full] * 100, "D", color=COLOURS[1], markersize=3)
        axes.set_ylim(0, 100)
        axes.set_xlim(0, 1)
        axes.set_title(shortened(method, 22), fontsize=9, color=INK, loc="left", parse_math=False)
        place = {"transform": axes.transAxes, "ha": "right", "va": "bottom"}
        axes.text(1, 1.02, f"ECE {100 * case.ece:.1f}", fontsize=8, color=INK, **place)
        clean_axes(lower[i])
        for panel in (axes, lower[i]):
            panel.set_gid(tag(method=method))
            panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
        lower[i].bar(middles, case.images / max(1, case.images.sum()) * 100, width=0.85 / bins, color=PALE)
        lower[i].set_xlabel("Confidence (max softmax)", fontsize=8, color=GREY)
    upper[0].set_ylabel("Accuracy %", fontsize=9, color=INK)
    lower[0].set_ylabel("Images %", fontsize=9, color=INK)
    return figure
