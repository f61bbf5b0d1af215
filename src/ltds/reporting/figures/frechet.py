"""Fréchet distance between source domains over training: does a method align the domains?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.axes_svg import (
    STROKES,
    WIDTH,
    Scale,
    document,
    legend_height,
    marks,
    method_legend,
    of_method,
    polyline,
    x_axis,
    y_axis,
)
from ltds.reporting.figures.canvas import GREY, INK, add_legend, clean_axes, legend_rows, new_figure, style
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import MODEL_INTERNALS, Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT, HEIGHT = 44.0, 200.0  # points: numbers and the name of the axis, and the axes


@dataclass(frozen=True)
class DomainDistances:
    """Number of finished epochs (T,); mean, smallest and largest distance (T,) over all pairs of domains."""

    epochs: FloatArray
    mean: FloatArray
    nearest: FloatArray
    farthest: FloatArray


def draw(context: FigureContext) -> Iterator[Drawing]:
    """Every method that recorded the distances during training."""
    computed = {label: domain_distances(runs) for label, runs in context.dataset.rows.items()}
    distances = {label: one for label, one in computed.items() if one}
    if distances:
        yield Drawing(
            partial(frechet, distances),
            "Distance between source domains over training",
            "A rising line is a method whose features separate the domains more and more. Bands reach from the "
            "closest to the farthest pair of domains. Squared Fréchet distance of validation features.",
            "; ".join(f"{label}: from {d.mean[0]:.3g} to {d.mean[-1]:.3g}" for label, d in distances.items()) + ".",
            MODEL_INTERNALS,
            page_svg=frechet_svg(distances),
        )


def domain_distances(runs: Iterable[Run]) -> DomainDistances | None:
    """The distances of each epoch, as means over these runs; None if no run recorded them."""
    by_epoch: dict[int, list[tuple[float, float, float]]] = {}
    for line in (line for run in runs for line in run.journal if line.get("kind") == "frechet"):
        values = list(line["pairs"].values())
        by_epoch.setdefault(int(line["epoch"]) + 1, []).append((line["mean"], min(values), max(values)))
    if not by_epoch:
        return None
    epochs = sorted(by_epoch)
    means = np.array([np.mean(by_epoch[epoch], axis=0) for epoch in epochs], dtype=np.float64)
    return DomainDistances(np.array(epochs, dtype=np.float64), *means.T)


def frechet_svg(distances: Mapping[str, DomainDistances]) -> str:
    """As `frechet`, for the page."""
    methods = list(distances)
    top = legend_height(methods) + 8
    epochs = np.concatenate([one.epochs for one in distances.values()])
    margin = 0.05 * float(np.ptp(epochs)) or 0.05
    most = max(float(np.nanmax(one.farthest, initial=0)) for one in distances.values())
    across = Scale(epochs.min() - margin, epochs.max() + margin, LEFT, WIDTH - 4)
    up = Scale(0, 1.05 * most or 1.0, top + HEIGHT, top)
    lines = (part for i, (name, one) in enumerate(distances.items()) for part in _method(i, name, one, across, up))
    axes = (*y_axis(up, LEFT, WIDTH - 4, "Fréchet distance"), *x_axis(across, top + HEIGHT, "Epochs done"))
    return document(top + HEIGHT + 32, [*method_legend(methods, 0), *axes, *lines])


def _method(i: int, name: str, one: DomainDistances, across: Scale, up: Scale) -> Iterator[str]:
    colour, dash, marker = style(i)
    x = across(one.epochs)
    band = np.concatenate([x, x[::-1]]), np.concatenate([up(one.nearest), up(one.farthest)[::-1]])
    yield polyline(*band, f'stroke="none" style="fill:{colour};fill-opacity:.12"{of_method(name)}')
    yield polyline(x, up(one.mean), f'stroke="{colour}" stroke-width="1.8"{STROKES[dash]}{of_method(name)}')
    yield marks(x, up(one.mean), marker, 3.5, colour, of_method(name))


def frechet(distances: Mapping[str, DomainDistances]) -> Figure:
    """A line for each method: the mean over pairs of domains, in a band from the closest to the farthest pair."""
    figure = new_figure(9, 3.3 + legend_rows(list(distances)))
    axes = figure.subplots()
    clean_axes(axes)
    handles = []
    for i, (label, one) in enumerate(distances.items()):
        colour, dash, marker = style(i)
        shown: dict[str, Any] = {"color": colour, "gid": tag(method=label)}
        axes.fill_between(one.epochs, one.nearest, one.farthest, alpha=0.12, linewidth=0, **shown)
        handles += axes.plot(one.epochs, one.mean, dash, linewidth=1.8, marker=marker, markersize=3.5, **shown)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Epochs done", fontsize=9, color=GREY)
    axes.set_ylabel("Fréchet distance", fontsize=9, color=INK)
    add_legend(figure, handles, list(distances), methods=True)
    return figure
