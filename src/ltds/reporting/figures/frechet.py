"""Fréchet distance between source domains over training: does a method align the domains?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.figures.canvas import GREY, INK, clean_axes, legend, legend_rows, new_figure, style
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import MODEL_INTERNALS, Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
            frechet(distances),
            "Distance between source domains over training",
            "A rising line is a method whose features separate the domains more and more. Bands reach from the "
            "closest to the farthest pair of domains. Squared Fréchet distance of validation features.",
            "; ".join(f"{label}: from {d.mean[0]:.3g} to {d.mean[-1]:.3g}" for label, d in distances.items()) + ".",
            MODEL_INTERNALS,
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
    legend(figure, handles, list(distances), methods=True)
    return figure
