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
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

NAMED = 25  # more names cannot be read at this size
MATRICES = {"covariances": "Covariances Σ", "updated": "Updated covariances Σ'"}
UPDATE = (
    " The update makes the covariance of a rare class (right, bottom) similar to those of classes with similar "
    "meaning. Each matrix has its own scale, from its largest distance to 0: compare patterns, not shades."
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
        method=semantic.label,
    )


def similarity(
    cosine: FloatArray, covariances: Mapping[str, FloatArray], order: IntArray, classes: Sequence[str]
) -> Figure:
    """Matrices (C,C), classes in `order` from head to tail: cosine of embeddings, then each of `covariances`.

    Each has its own scale, over the pairs of different classes. Grey: NaN, a class without embedding.
    """
    matrices = {"Embeddings (cosine)": cosine, **covariances}
    figure = new_figure(9, 9 / max(2, len(matrices)) + 0.9)
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    names = [shortened(classes[c], 16) for c in order]
    for i, (axes, (name, values)) in enumerate(zip(panels, matrices.items(), strict=True)):
        shown = np.ma.masked_invalid(values[np.ix_(order, order)])
        low, high = _limits(values)
        image = axes.imshow(shown, cmap="YlGnBu", vmin=low, vmax=high, interpolation="nearest")
        axes.set_title(name, fontsize=9, color=INK, loc="left")
        _scale(figure, image, axes)
        _frame(axes, names, named=i == 0)
    return figure


def covariance_similarity(distances: FloatArray) -> FloatArray:
    """exp(-|Sigma_i - Sigma_j| / m), m: the median over pairs of different classes.

    Without m, the similarity of covariances in the supplement of Gu et al., all pairs of a matrix with large distances
    would have a similarity of 0, and the figure would be blank.
    """
    different = distances[~np.eye(len(distances), dtype=np.bool_) & np.isfinite(distances)]
    middle = float(np.median(different)) if different.size else 0.0
    return np.exp(-distances / middle) if middle > 0 else np.exp(-distances)


def _limits(values: FloatArray) -> tuple[float, float]:
    """Lowest and highest value over pairs of different classes: the diagonal would hide differences between them."""
    different = values[~np.eye(len(values), dtype=np.bool_) & np.isfinite(values)]
    if not different.size or different.min() == different.max():
        return 0.0, 1.0
    return float(different.min()), float(different.max())


def _scale(figure: Figure, image: AxesImage, axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(image, ax=axes, orientation="horizontal", fraction=0.05, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7, colors=GREY, length=0)
    bar.locator = MaxNLocator(3, prune="both")  # a number at an end would touch that of the next panel
    bar.update_ticks()


def _frame(axes: Axes, names: Sequence[str], named: bool) -> None:
    axes.set_facecolor(ABSENT)
    axes.spines[:].set_visible(False)
    first, last = _end_labels(axes, len(names))
    first.set_horizontalalignment("left")  # centred, the last would touch the first of the next panel
    last.set_horizontalalignment("right")
    if named and len(names) <= NAMED:
        axes.set_yticks(range(len(names)), names, parse_math=False)
    else:
        axes.set_yticks([])
    axes.tick_params(colors=GREY, length=0, labelsize=8)
    axes.tick_params(axis="y", labelsize=7)


def _end_labels(axes: Axes, count: int) -> list[Text]:
    axes.set_xticks([-0.5, count - 0.5], ["head", "tail"])
    return list(axes.get_xticklabels())
