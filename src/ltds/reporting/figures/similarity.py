"""Pairwise similarity of classes: in the semantic embeddings, and in the covariances before and after borrowing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import ABSENT, INK, QUIET, blank, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
NAMED = 25  # more names cannot be told apart at this size


def similarity(
    cosine: Floats, covariances: Mapping[str, Floats], order: NDArray[np.int64], classes: Sequence[str]
) -> Figure:
    """Matrices (C,C), classes in `order` from head to tail: cosine of embeddings, then each of `covariances`.

    The latter share one scale; values are exp(-distance), so 1 is "the same". NaN, a class without embedding, is grey.
    """
    count = 1 + len(covariances)
    figure = blank(9, 9 / max(2, count) + 0.5)
    panels = figure.subplots(1, count, squeeze=False)[0]
    grid = np.ix_(order, order)
    first = panels[0].imshow(np.ma.masked_invalid(cosine[grid]), cmap="YlGnBu", interpolation="nearest")
    panels[0].set_title("Embeddings (cosine)", fontsize=9, color=INK, loc="left")
    _scale(figure, first, [panels[0]])
    lowest = min((float(np.nanmin(values)) for values in covariances.values()), default=0.0)
    for axes, (name, values) in zip(panels[1:], covariances.items(), strict=True):
        shown = np.ma.masked_invalid(values[grid])
        image = axes.imshow(shown, cmap="YlGnBu", vmin=min(lowest, 0.999), vmax=1, interpolation="nearest")
        axes.set_title(name, fontsize=9, color=INK, loc="left")
    if covariances:
        _scale(figure, image, list(panels[1:]))
    for place, axes in enumerate(panels):
        _frame(axes, [shortened(classes[c], 16) for c in order], named=place == 0)
    return figure


def similar(distances: Floats) -> Floats:
    """exp(-|Sigma_i - Sigma_j|), the paper's similarity of covariances (supplement)."""
    return np.exp(-distances)


def _scale(figure: Figure, image: object, axes: list[Axes]) -> None:
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", fraction=0.05, pad=0.02, aspect=30)  # type: ignore[arg-type]
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, colors=QUIET, length=0)
    bar.ax.locator_params(nbins=4)


def _frame(axes: Axes, names: Sequence[str], named: bool) -> None:
    axes.set_facecolor(ABSENT)
    axes.spines[:].set_visible(False)
    axes.set_xticks([0, len(names) - 1], ["head", "tail"])
    if named and len(names) <= NAMED:
        axes.set_yticks(range(len(names)), names, parse_math=False)
    else:
        axes.set_yticks([])
    axes.tick_params(colors=QUIET, length=0, labelsize=8)
    axes.tick_params(axis="y", labelsize=7)
