"""How many training images each class has in each source domain, and which pairs do not exist."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.class_accuracy import head_to_tail
from ltds.reporting.figures.axes_svg import WIDTH, Scale, bars, document, short_number, text, text_width, y_axis
from ltds.reporting.figures.canvas import (
    ABSENT,
    COLOURS,
    GREY,
    INK,
    clean_axes,
    label_classes,
    label_domains,
    new_figure,
    shortened,
)
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.matrix_svg import ROW, colour, colour_scale, column_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP, BARS = 20.0, 108.0  # points: the scale of the colours, and the bars


def draw(context: FigureContext) -> Iterator[Drawing]:
    counts = context.dataset.class_images()
    sizes = counts.sum(axis=0)
    shown = counts, context.dataset.classes, list(context.dataset.counts)
    yield Drawing(
        partial(distribution, *shown),
        "Training images",
        "From head to tail: how imbalanced the classes are, and which classes are missing (crosses) in which domain.",
        f"{int((counts == 0).sum())} of {counts.size} class-domain pairs have no training image; the largest class has "
        f"{int(sizes.max())} images, the smallest {int(sizes.min())}.",
        page_svg=distribution_svg(*shown),
    )


def distribution_svg(counts: NDArray[np.int64], classes: Sequence[str], domains: Sequence[str]) -> str:
    """As `distribution`, for the page."""
    order = head_to_tail(counts.sum(axis=0))
    counts = counts[:, order]
    names = [shortened(name) for name in domains]
    left = max([44.0, *(text_width(name) + 10 for name in names)])
    wide = (WIDTH - left - 4) / max(1, len(classes))
    images, top = counts.sum(axis=0).astype(np.float64), TOP + BARS + 8
    scale = Scale(0, max(1.0, 1.05 * images.max(initial=0)), TOP + BARS, TOP)
    below, labels = column_labels([classes[c] for c in order], left, wide, top + ROW * len(domains))
    middles = left + wide * (np.arange(len(classes), dtype=np.float64) + 0.5)
    return document(
        top + ROW * len(domains) + below,
        [
            *colour_scale("Images (log)", "1", short_number(_most(counts))),
            *y_axis(scale, left, WIDTH - 4, "Training images"),
            bars(middles, scale(images), scale.start, 0.75 * wide, COLOURS[0]),
            *_cells(counts, left, wide, top),
            *(text(left - 5, top + ROW * (i + 0.5) + 3, name, "end") for i, name in enumerate(names)),
            *labels,
        ],
    )


def _cells(counts: NDArray[np.int64], left: float, wide: float, top: float) -> Iterator[str]:
    """A path for each colour, and one with a small cross on each pair without training images. counts (K,C)."""
    size, most = max(0.4, min(1.9, wide / 4)), math.log(_most(counts))
    cells: dict[str, list[str]] = {}
    crosses = []
    for (r, c), count in np.ndenumerate(counts):
        x, y = left + c * wide, top + r * ROW
        fill = colour(100 * math.log(count) / most) if count else ABSENT
        cells.setdefault(fill, []).append(f"M{x:.1f} {y:g}h{wide - 0.4:.1f}v{ROW - 0.6:g}h{0.4 - wide:.1f}z")
        if not count:
            x, y, both = x + wide / 2 - size, y + ROW / 2 - size, 2 * size
            crosses.append(f"M{x:.1f} {y:.1f}l{both:.1f} {both:.1f}m0 {-both:.1f}l{-both:.1f} {both:.1f}")
    yield from (f'<path d="{"".join(paths)}" fill="{fill}"/>' for fill, paths in cells.items())
    yield f'<path d="{"".join(crosses)}" stroke="#9aa1ab" stroke-width=".7"/>'


def _most(counts: NDArray[np.int64]) -> int:
    """Images of the darkest colour."""
    return max(2, int(counts.max(initial=0)))


def distribution(counts: NDArray[np.int64], classes: Sequence[str], domains: Sequence[str]) -> Figure:
    """Bars with the images of each class above a matrix of domains and classes, head to tail. counts (K,C)."""
    from matplotlib.colors import LogNorm

    order = head_to_tail(counts.sum(axis=0))
    counts = counts[:, order]
    figure = new_figure(9, 2.6 + 0.32 * len(domains))
    upper, matrix, scale = figure.subplot_mosaic(
        [["bars", "."], ["matrix", "scale"]],
        height_ratios=[1.5, 0.32 * len(domains) + 0.2],
        width_ratios=[1, 0.015],
    ).values()
    upper.sharex(matrix)
    clean_axes(upper)
    upper.bar(range(len(classes)), counts.sum(axis=0), color=COLOURS[0], width=0.75)
    upper.set_ylabel("Training images", fontsize=9, color=INK)
    upper.tick_params(axis="x", labelbottom=False, length=0)
    matrix.set_facecolor(ABSENT)
    shown = np.ma.masked_equal(counts, 0)
    norm = LogNorm(1, _most(counts))
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
