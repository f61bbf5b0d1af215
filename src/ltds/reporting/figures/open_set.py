"""Open set: how known and open images score, what each threshold gives, and the OSCR curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import COLOURS, INK, QUIET, blank, key, quiet, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
BINS = 20


@dataclass(frozen=True)
class OpenSet:
    """Scores of known (N,) and open (M,) images; a, b and h (T,) over thresholds (T,); the OSCR curve x, y (L,).

    `marked`: thresholds by the name of the rule that chose them.
    """

    known: Floats
    opened: Floats
    thresholds: Floats
    a: Floats
    b: Floats
    h: Floats
    x: Floats
    y: Floats
    marked: Mapping[str, float]


def open_set(cases: Mapping[str, OpenSet]) -> Figure:
    """A row for each method: histograms of max softmax, a, b and H over the threshold, and the OSCR curve."""
    figure = blank(9, 2.7 * len(cases))
    panels = figure.subplots(len(cases), 3, squeeze=False)
    for line, (method, case) in zip(panels, cases.items(), strict=True):
        for axes in line:
            quiet(axes)
        line[0].set_title(shortened(method, 40), fontsize=9, color=INK, loc="left", parse_math=False)
        _histograms(line[0], case)
        _rates(line[1], case)
        _curve(line[2], case)
    return figure


def _histograms(axes: Axes, case: OpenSet) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    handles = []
    for scores, colour, dash in ((case.known, COLOURS[0], "-"), (case.opened, COLOURS[1], "--")):
        share = np.histogram(scores, edges)[0] / max(1, len(scores)) * 100
        handles.append(axes.stairs(share, edges, color=colour, linewidth=1.6, linestyle=dash))
        axes.stairs(share, edges, color=colour, fill=True, alpha=0.15)
    key(axes, handles, ["known", "open"])
    axes.set_xlabel("Max softmax", fontsize=8, color=QUIET)
    axes.set_ylabel("Images %", fontsize=8, color=INK)


def _rates(axes: Axes, case: OpenSet) -> None:
    lines = ((case.a, COLOURS[0], "-"), (case.b, COLOURS[1], "--"), (case.h, COLOURS[6], "-"))
    handles = []
    for values, colour, dash in lines:
        handles += axes.plot(case.thresholds, values * 100, dash, color=colour, linewidth=1.6)
    for place, (name, threshold) in enumerate(case.marked.items()):
        axes.axvline(threshold, color=QUIET, linewidth=0.8, linestyle=":")
        axes.text(threshold, 99 - 9 * place, f" {name}", fontsize=7, color=QUIET, va="top")
    axes.set_ylim(0, 100)
    axes.set_xlim(0, 1)
    axes.legend(handles, ["a", "b", "H"], frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    axes.set_xlabel("Threshold", fontsize=8, color=QUIET)
    axes.set_ylabel("%", fontsize=8, color=INK)


def _curve(axes: Axes, case: OpenSet) -> None:
    axes.plot(case.x * 100, case.y * 100, color=COLOURS[2], linewidth=1.6)
    axes.fill_between(case.x * 100, case.y * 100, color=COLOURS[2], alpha=0.12, linewidth=0)
    area = 100 * float((np.diff(case.x) * (case.y[1:] + case.y[:-1])).sum() / 2)
    axes.text(96, 5, f"OSCR {area:.1f}", fontsize=8, color=INK, ha="right")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_xlabel("Open images accepted %", fontsize=8, color=QUIET)
    axes.set_ylabel("Known, accepted and right %", fontsize=8, color=INK)
