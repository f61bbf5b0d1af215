"""How many training images each class has in each source domain, and which pairs do not exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import (
    ABSENT,
    COLOURS,
    GREY,
    INK,
    clean_axes,
    label_classes,
    label_domains,
    new_figure,
)
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(context: FigureContext) -> Iterator[Drawing]:
    counts = context.dataset.class_images()
    sizes = counts.sum(axis=0)
    yield Drawing(
        distribution(counts, context.dataset.classes, list(context.dataset.counts)),
        "Training images",
        "From head to tail: how imbalanced the classes are, and which classes are missing (crosses) in which domain.",
        f"{int((counts == 0).sum())} of {counts.size} class-domain pairs have no training image; the largest class has "
        f"{int(sizes.max())} images, the smallest {int(sizes.min())}.",
    )


def distribution(counts: NDArray[np.int64], classes: Sequence[str], domains: Sequence[str]) -> Figure:
    """Bars with the images of each class above a matrix of domains and classes, head to tail. counts (K,C)."""
    from matplotlib.colors import LogNorm

    order = np.argsort(-counts.sum(axis=0), kind="stable")
    counts = counts[:, order]
    figure = new_figure(9, 2.6 + 0.32 * len(domains))
    bars, matrix, scale = figure.subplot_mosaic(
        [["bars", "."], ["matrix", "scale"]],
        height_ratios=[1.5, 0.32 * len(domains) + 0.2],
        width_ratios=[1, 0.015],
    ).values()
    bars.sharex(matrix)
    clean_axes(bars)
    bars.bar(range(len(classes)), counts.sum(axis=0), color=COLOURS[0], width=0.75)
    bars.set_ylabel("Training images", fontsize=9, color=INK)
    bars.tick_params(axis="x", labelbottom=False, length=0)
    matrix.set_facecolor(ABSENT)
    shown = np.ma.masked_equal(counts, 0)
    norm = LogNorm(1, max(2, int(counts.max(initial=0))))
    image = matrix.imshow(shown, aspect="auto", cmap="YlGnBu", norm=norm, interpolation="nearest")
    _cross_out(matrix, counts)
    matrix.spines[:].set_visible(False)
    matrix.tick_params(colors=GREY)
    label_classes(matrix, [classes[c] for c in order])
    label_domains(matrix, domains)
    bar = figure.colorbar(image, cax=scale)
    bar.outline.set_visible(False)
    bar.set_label("Images (log)", fontsize=8, color=INK)
    scale.tick_params(labelsize=8, colors=GREY, which="both", length=0)
    return figure


def _cross_out(axes: object, counts: NDArray[np.int64]) -> None:
    """A small cross on every pair without training images."""
    rows, columns = np.nonzero(counts == 0)
    size = 14 if counts.shape[1] <= 60 else 2
    axes.scatter(columns, rows, marker="x", s=size, linewidths=0.7, color="#9aa1ab", rasterized=len(rows) > 600)  # type: ignore[attr-defined]
