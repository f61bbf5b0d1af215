"""Training curves: the terms of the loss, and accuracy on validation images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.canvas import (
    DASHES,
    GREY,
    INK,
    add_legend,
    clean_axes,
    few_ticks,
    legend_rows,
    new_figure,
    style,
)
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.curves_svg import SvgCurve, SvgPanel, curves_svg
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Curve = tuple[FloatArray, FloatArray]  # steps, values
POINTS = 120  # more points make the file larger without a visible difference
GROUP = "Training of each method"


def draw(context: FigureContext) -> Iterator[Drawing]:
    """A figure for each method."""
    for label, runs in context.dataset.rows.items():
        terms, validation = loss_terms(runs), validation_curves(runs)
        if terms or validation:
            yield Drawing(
                partial(training, terms, validation),
                f"Training of {label}",
                "If the loss still falls or the accuracy still rises at the right end, longer training may help.",
                f"Loss terms ({', '.join(terms)}) averaged over {len(runs)} runs, and validation accuracy of each.",
                GROUP,
                method=label,
                page_svg=training_svg(terms, validation),
            )


def loss_terms(runs: Iterable[Run]) -> dict[str, Curve]:
    """Term -> (steps, mean over runs and neighbouring steps); a single term equals the loss and is shown once."""
    points: dict[str, list[tuple[float, float]]] = {}
    for line in (line for run in runs for line in run.journal if line.get("kind") == "step"):
        terms = line.get("terms") or {}
        shown = terms if len(terms) == 1 else {"total": line.get("loss"), **terms}
        for name, value in shown.items():
            if isinstance(value, int | float) and isinstance(line.get("step"), int):
                points.setdefault(str(name), []).append((line["step"], value))
    return {name: thinned(*np.array(pairs, dtype=np.float64).T) for name, pairs in points.items()}


def validation_curves(runs: Iterable[Run]) -> list[tuple[str, Curve]]:
    """Held-out domain and (steps, accuracy as a fraction) of each run that has validation images."""
    curves = []
    for run in runs:
        lines = [line for line in run.journal if line.get("kind") == "validation" and line.get("accuracy") is not None]
        if lines:
            steps = np.array([line["step"] for line in lines], dtype=np.float64)
            values = np.array([line["accuracy"] for line in lines], dtype=np.float64)
            curves.append((run.held_out, thinned(steps, values)))
    return curves


def thinned(steps: FloatArray, values: FloatArray, points: int = POINTS) -> Curve:
    """(P,), (P,) with P at most `points`: means over groups of equally many distinct steps."""
    distinct, index = np.unique(steps, return_inverse=True)
    size = -(-len(distinct) // points)
    bins = index // size
    count = np.bincount(bins)
    return np.bincount(bins, weights=steps) / count, np.bincount(bins, weights=values) / count


def training_svg(terms: Mapping[str, Curve], validation: Sequence[tuple[str, Curve]]) -> str:
    """The same as `training`, for the page."""
    losses = {name: SvgCurve(*curve, *style(i)[:2]) for i, (name, curve) in enumerate(terms.items())}
    domains = list(dict.fromkeys(held_out for held_out, _ in validation))
    drawn: Counter[str] = Counter()
    runs: list[SvgCurve] = []
    first: dict[str, SvgCurve] = {}
    for held_out, (steps, values) in validation:
        dash = DASHES[drawn[held_out] % len(DASHES)]
        runs.append(SvgCurve(steps, values * 100, style(domains.index(held_out))[0], dash, held_out))
        first.setdefault(f"held out: {held_out}", runs[-1])
        drawn[held_out] += 1
    loss = SvgPanel("Loss", list(losses.values()), list(losses.items()))
    accuracy = SvgPanel("Validation accuracy %", runs, list(first.items()), (0.0, 100.0), "no validation images")
    return curves_svg([loss, accuracy])


def training(terms: Mapping[str, Curve], validation: Sequence[tuple[str, Curve]]) -> Figure:
    """Left: a line for each loss term; right: a line for the validation accuracy of each run (fractions).

    The runs with one held-out domain share a colour, and its seeds have other dashes.
    """
    domains = list(dict.fromkeys(held_out for held_out, _ in validation))
    figure = new_figure(9, 2.8 + max(legend_rows(list(terms), 3), legend_rows(domains, 3)))
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "Loss"), (right, "Validation accuracy %")):
        clean_axes(axes)
        axes.set_title(name, fontsize=9, color=INK, loc="left")
        axes.set_xlabel("Step", fontsize=9, color=GREY)
    handles = []
    for i, (steps, values) in enumerate(terms.values()):
        colour, dash, _ = style(i)
        handles += left.plot(steps, values, dash, color=colour, linewidth=1.4)
    if handles:
        add_legend(figure, handles, list(terms), "outside lower left", columns=3)
        left.set_ylim(bottom=min(0, left.get_ylim()[0]))
    first = _validation_lines(right, validation, domains)
    if first:
        add_legend(figure, first, [f"held out: {name}" for name in domains], "outside lower right", columns=3)
    else:
        right.text(0.5, 0.5, "no validation images", transform=right.transAxes, ha="center", color=GREY, fontsize=9)
    right.set_ylim(0, 100)
    for axes in (left, right):
        few_ticks(axes)
    return figure


def _validation_lines(axes: Axes, validation: Sequence[tuple[str, Curve]], domains: Sequence[str]) -> list[Line2D]:
    """A line for each run; the first of each domain, for the legend."""
    first: dict[str, Line2D] = {}
    drawn: Counter[str] = Counter()
    for held_out, (steps, values) in validation:
        colour, _, symbol = style(domains.index(held_out))
        dash, marker = DASHES[drawn[held_out] % len(DASHES)], symbol if len(steps) < 2 else ""
        shown: dict[str, Any] = {"color": colour, "marker": marker, "gid": tag(domain=held_out)}
        (line,) = axes.plot(steps, values * 100, dash, linewidth=1.2, markersize=3, **shown)
        first.setdefault(held_out, line)
        drawn[held_out] += 1
    return list(first.values())
