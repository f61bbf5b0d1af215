"""Accuracy of each class in each domain, with the pairs that training never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import ABSENT, INK, QUIET, blank, label_classes, label_domains, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pairs(
    accuracy: Mapping[str, NDArray[np.float64]],
    seen: NDArray[np.bool_],
    order: NDArray[np.int64],
    classes: Sequence[str],
    domains: Sequence[str],
) -> Figure:
    """A matrix for each method, (all domains, C), classes in `order` (C,); a dot marks a pair without training images.

    NaN, a pair without test images, is left grey.
    """
    figure = blank(9, 0.7 + len(accuracy) * (0.5 + 0.26 * len(domains)))
    panels = figure.subplots(len(accuracy), 1, sharex=True, squeeze=False)[:, 0]
    rows, columns = np.nonzero(~seen[:, order])
    size = 7 if len(classes) <= 60 else 0.8
    for axes, (method, values) in zip(panels, accuracy.items(), strict=True):
        axes.set_facecolor(ABSENT)
        masked = np.ma.masked_invalid(values[:, order] * 100)
        image = axes.imshow(masked, aspect="auto", cmap="YlGnBu", vmin=0, vmax=100, interpolation="nearest")
        light = np.nan_to_num(values[:, order])[rows, columns] < 0.55
        colours = np.where(light, "#B4430A", "#FFD27A")
        axes.scatter(columns, rows, s=size, c=colours, linewidths=0, rasterized=len(rows) > 600)
        axes.set_title(shortened(method, 60), fontsize=9, color=INK, loc="left", parse_math=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(colors=QUIET, bottom=False)
        label_domains(axes, domains)
    label_classes(panels[-1], [classes[c] for c in order])
    bar = figure.colorbar(image, ax=list(panels), fraction=0.02, pad=0.01)
    bar.set_label("Accuracy %", fontsize=9, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    return figure
