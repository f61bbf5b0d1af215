"""Pairwise similarity of classes: of their embeddings, and of their covariances before and after the update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.arrays import FloatArray, IntArray
from ltds.reporting.class_accuracy import head_to_tail
from ltds.reporting.figures.canvas import ABSENT, GREY, INK, new_figure, shortened
from ltds.reporting.figures.context import FigureContext, run_note
from ltds.reporting.figures.drawing import MODEL_INTERNALS, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 25  # more names cannot be read at this size
MATRICES = {"covariances": "Covariances Σ", "updated": "Updated covariances Σ'"}
UPDATE = (
    " The update makes the covariance of a rare class (right, bottom) similar to those of classes with similar meaning."
)


def draw(context: FigureContext) -> Iterator[Drawing]:
    """For the method that stored the most diagnostics of a semantic space."""
    semantic = context.semantic_run
    if semantic is None:
        return
    run, arrays = semantic.run, semantic.table.diagnostics
    matrices = {
        title: covariance_similarity(arrays[key].astype(np.float64)) for key, title in MATRICES.items() if key in arrays
    }
    order = head_to_tail(run.task.class_counts)
    yield Drawing(
        similarity(arrays["embeddings"].astype(np.float64), matrices, order, run.task.classes),
        f"Similarity of classes in {semantic.label}",
        f"Each cell is a pair of classes; dark means similar.{UPDATE if matrices else ''} "
        f"{run_note({semantic.label: run})}",
        f"Matrices over {len(order)} classes: {', '.join(['cosine of embeddings', *matrices])}.",
        MODEL_INTERNALS,
        pixels=True,
    )


def similarity(
    cosine: FloatArray, covariances: Mapping[str, FloatArray], order: IntArray, classes: Sequence[str]
) -> Figure:
    """Matrices (C,C), classes in `order` from head to tail: cosine of embeddings, then each of `covariances`.

    The covariances share one scale; values are exp(-distance), so 1 means equal. Grey: NaN, a class without embedding.
    """
    count = 1 + len(covariances)
    figure = new_figure(9, 9 / max(2, count) + 0.5)
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
    for i, axes in enumerate(panels):
        _frame(axes, [shortened(classes[c], 16) for c in order], named=i == 0)
    return figure


def covariance_similarity(distances: FloatArray) -> FloatArray:
    """exp(-|Sigma_i - Sigma_j|), the similarity of covariances in the supplement of Gu et al."""
    return np.exp(-distances)


def _scale(figure: Figure, image: object, axes: list[Axes]) -> None:
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", fraction=0.05, pad=0.02, aspect=30)  # type: ignore[arg-type]
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, colors=GREY, length=0)
    bar.ax.locator_params(nbins=4)


def _frame(axes: Axes, names: Sequence[str], named: bool) -> None:
    axes.set_facecolor(ABSENT)
    axes.spines[:].set_visible(False)
    axes.set_xticks([0, len(names) - 1], ["head", "tail"])
    if named and len(names) <= NAMED:
        axes.set_yticks(range(len(names)), names, parse_math=False)
    else:
        axes.set_yticks([])
    axes.tick_params(colors=GREY, length=0, labelsize=8)
    axes.tick_params(axis="y", labelsize=7)
