"""Open set: scores of known and open images, the rates at each threshold, and the OSCR curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.evaluation.metrics import harmonic
from ltds.evaluation.openset import OpenSetScores, best_h, oscr_curve, rates
from ltds.reporting.figures.canvas import COLOURS, GREY, INK, add_legend, clean_axes, new_figure, shortened
from ltds.reporting.figures.context import FigureContext, run_note
from ltds.reporting.figures.drawing import OPEN_CLASSES, Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 20
POINTS = 200  # of a curve over thresholds


@dataclass(frozen=True)
class OpenSetCurves:
    """Scores of known (N,) and open (M,) images; a, b and h (T,) over thresholds (T,); the OSCR curve x, y (L,).

    `score`: what they are called. `marked`: name of a rule -> the threshold that it chose. `deployed_h`: H at the
    threshold of the deployed model, None without one.
    """

    known: FloatArray
    opened: FloatArray
    thresholds: FloatArray
    a: FloatArray
    b: FloatArray
    h: FloatArray
    x: FloatArray
    y: FloatArray
    marked: Mapping[str, float]
    score: str = "Max softmax"
    deployed_h: float | None = None

    @property
    def summary(self) -> str:
        oracle = f"best H {100 * self.h.max():.1f} % (oracle: its threshold is chosen on test labels)"
        return (
            oracle
            if self.deployed_h is None
            else f"H {100 * self.deployed_h:.1f} % at the deployed threshold, {oracle}"
        )


def draw(context: FigureContext) -> Iterator[Drawing]:
    runs = context.compared_runs
    known_scores = {**context.open_set_scores, **context.deployed_scores}
    computed = {label: open_set_curves(runs[label], scores) for label, scores in known_scores.items()}
    cases = {label: case for label, case in computed.items() if case}
    if cases:
        yield Drawing(
            open_set(cases),
            "Known and open images",
            "The less the histograms overlap, the better open classes are detected. a: known images accepted and "
            "correct, b: open images rejected, H: their harmonic mean at each threshold. The oracle threshold is the "
            "best one, chosen on test labels. The softened confidence is what the deployed model compares with its "
            f"threshold; AUROC and OSCR of the tables use the largest softmax value. {run_note(runs)}",
            "; ".join(f"{label}: {case.summary}" for label, case in cases.items()) + ".",
            OPEN_CLASSES,
        )


def open_set_curves(run: Run, scores: OpenSetScores) -> OpenSetCurves | None:
    """Scores, rates and curve of a run; None without known or without open images.

    scores: by the deployed rule of the run, or by the largest softmax value where it has none.
    """
    thresholds = np.linspace(0, 1, POINTS + 1)
    both, curve = rates(scores, thresholds), oscr_curve(scores)
    if both is None or curve is None:
        return None
    known, opened = scores.confidence[scores.known], scores.confidence[~scores.known]
    kept = np.unique(np.linspace(0, len(curve[0]) - 1, POINTS + 1).round().astype(np.int64))
    x, y = curve[0][kept] / len(opened), curve[1][kept] / len(known)
    rule, h = run.deployed_rule, harmonic(*both)
    at_rule = best_h(scores, np.array([rule.threshold])) if rule else None
    score, deployed_h = "Softened confidence" if rule else "Max softmax", at_rule[0] if at_rule else None
    return OpenSetCurves(known, opened, thresholds, *both, h, x, y, _thresholds(run), score, deployed_h)


def _thresholds(run: Run) -> Mapping[str, float]:
    """The thresholds on the score of the figure with which the metrics of the run were computed."""
    of_softmax = {"h_oracle": "oracle", "h_softmax5": "5th percentile"}
    names = {"h_fixed": "deployed", "h_best": "oracle"} if run.deployed_rule else of_softmax
    values = {word: run.metrics.choices.get(name, {}).get("threshold") for name, word in names.items()}
    return {word: float(value) for word, value in values.items() if isinstance(value, int | float)}


def open_set(cases: Mapping[str, OpenSetCurves]) -> Figure:
    """A row for each method: histograms of the score, a, b and H over the threshold, and the OSCR curve."""
    figure = new_figure(9, 2.7 * len(cases) + 0.2)
    panels = figure.subplots(len(cases), 3, squeeze=False)
    for line, (method, case) in zip(panels, cases.items(), strict=True):
        for axes in line:
            clean_axes(axes)
            axes.set_gid(tag(method=method))
        line[0].set_title(shortened(method, 40), fontsize=9, color=INK, loc="left", parse_math=False)
        handles = [*_histograms(line[0], case), *_rates(line[1], case)]
        _curve(line[2], case)
    names = ["known images", "open images", "a: known and right", "b: open, rejected", "H"]
    add_legend(figure, handles, names, columns=5)
    return figure


def _histograms(axes: Axes, case: OpenSetCurves) -> list[Artist]:
    edges = np.linspace(0, 1, BINS + 1)
    handles: list[Artist] = []
    for scores, colour, dash in ((case.known, COLOURS[0], "-"), (case.opened, COLOURS[1], "--")):
        share = np.histogram(scores, edges)[0] / max(1, len(scores)) * 100
        handles.append(axes.stairs(share, edges, color=colour, linewidth=1.6, linestyle=dash))
        axes.stairs(share, edges, color=colour, fill=True, alpha=0.15)
    axes.set_xlim(0, 1)
    axes.set_xlabel(case.score, fontsize=8, color=GREY)
    axes.set_ylabel("Images %", fontsize=8, color=INK)
    return handles


def _rates(axes: Axes, case: OpenSetCurves) -> list[Artist]:
    lines = ((case.a, COLOURS[0], "-"), (case.b, COLOURS[1], "--"), (case.h, COLOURS[6], "-"))
    handles: list[Artist] = []
    for values, colour, dash in lines:
        handles += axes.plot(case.thresholds, values * 100, dash, color=colour, linewidth=1.6)
    for i, (name, threshold) in enumerate(case.marked.items()):
        axes.axvline(threshold, color=GREY, linewidth=0.8, linestyle=":")
        side = "right" if threshold > 0.5 else "left"  # inside the panel
        around = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
        axes.text(threshold, 99 - 9 * i, f" {name} ", fontsize=7, color=GREY, va="top", ha=side, bbox=around)
    axes.set_ylim(0, 100)
    axes.set_xlim(0, 1)
    axes.set_xlabel("Threshold", fontsize=8, color=GREY)
    axes.set_ylabel("%", fontsize=8, color=INK)
    return handles


def _curve(axes: Axes, case: OpenSetCurves) -> None:
    axes.plot(case.x * 100, case.y * 100, color=COLOURS[2], linewidth=1.6)
    axes.fill_between(case.x * 100, case.y * 100, color=COLOURS[2], alpha=0.12, linewidth=0)
    area = 100 * float((np.diff(case.x) * (case.y[1:] + case.y[:-1])).sum() / 2)
    axes.text(96, 5, f"Area {area:.1f}", fontsize=8, color=INK, ha="right")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_xlabel("Open images accepted %", fontsize=8, color=GREY)
    axes.set_ylabel("Known, accepted and correct %", fontsize=8, color=INK)
