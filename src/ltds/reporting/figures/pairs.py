"""Accuracy of each class in each domain, with the pairs that training never saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltds.core.task import Task
from ltds.evaluation.arrays import BoolArray, FloatArray, IntArray
from ltds.evaluation.class_groups import known_mask
from ltds.reporting.class_accuracy import head_to_tail, mean_known
from ltds.reporting.figures.canvas import ABSENT, GREY, INK, label_classes, label_domains, new_figure, shortened
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.matrix_svg import DARK, ON_DARK, ON_LIGHT, matrix_svg
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUP = "Accuracy of each class in each domain"


def draw(context: FigureContext) -> Iterator[Drawing]:
    """A figure for each held-out domain and each method, the leader first."""
    dataset = context.dataset
    labels = sorted(dataset.rows, key=lambda label: label != context.leader)
    order = head_to_tail(dataset.class_images().sum(axis=0))
    for held_out in dataset.held_out:
        for label in labels:
            runs = [run for run in dataset.rows[label] if run.held_out == held_out]
            values = pair_accuracy(runs)
            if values is not None:
                yield _drawing(label, held_out, runs[0].task, values, order)


def _drawing(label: str, held_out: str, task: Task, values: FloatArray, order: IntArray) -> Drawing:
    names = [f"{d} (held out)" if d == task.held_out else d for d in task.domains]
    classes = [task.classes[c] for c in order]
    known = known_mask(task)
    values = np.where(known, values, np.nan)  # no method names an open class, so its accuracy says nothing of domains
    unseen = ~task.seen_in_domain & known
    return Drawing(
        lambda: pairs({label: values}, unseen, order, task.classes, names),
        f"{label}, held out: {held_out}",
        "Dots mark pairs without training images: pale cells with a dot show the cost of domain shift. "
        "Grey: no test images, or a class without training images in any domain.",
        _describe(label, values, task.seen_in_domain),
        GROUP,
        method=label,
        held_out=held_out,
        page_svg=matrix_svg(values[:, order] * 100, unseen[:, order], names, classes),
    )


def pair_accuracy(runs: Iterable[Run]) -> FloatArray | None:
    """(all domains, C): mean over these runs of the accuracy of each pair; None if no run has it."""
    matrices = [run.metrics.pairs.accuracy for run in runs if run.metrics.pairs]
    return mean_known(np.array(matrices, dtype=np.float64)) if matrices else None


def pairs(
    accuracy: Mapping[str, FloatArray],
    unseen: BoolArray,
    order: IntArray,
    classes: Sequence[str],
    domains: Sequence[str],
) -> Figure:
    """A matrix for each method, (all domains, C), classes in `order` (C,); a dot marks an `unseen` pair.

    Grey: NaN, a pair without a meaningful accuracy.
    """
    figure = new_figure(9, 0.7 + len(accuracy) * (0.5 + 0.26 * len(domains)))
    panels = figure.subplots(len(accuracy), 1, sharex=True, squeeze=False)[:, 0]
    rows, columns = np.nonzero(unseen[:, order])
    size = 7 if len(classes) <= 60 else 0.8
    for axes, (method, values) in zip(panels, accuracy.items(), strict=True):
        axes.set_facecolor(ABSENT)
        masked = np.ma.masked_invalid(values[:, order] * 100)
        image = axes.imshow(masked, aspect="auto", cmap="YlGnBu", vmin=0, vmax=100, interpolation="nearest")
        light = np.nan_to_num(values[:, order])[rows, columns] < DARK / 100
        colours = np.where(light, ON_LIGHT, ON_DARK)
        axes.scatter(columns, rows, s=size, c=colours, linewidths=0, rasterized=len(rows) > 600)
        axes.set_title(shortened(method, 60), fontsize=9, color=INK, loc="left", parse_math=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(colors=GREY, bottom=False)
        label_domains(axes, domains)
    label_classes(panels[-1], [classes[c] for c in order])
    bar = figure.colorbar(image, ax=list(panels), fraction=0.02, pad=0.01)
    bar.set_label("Accuracy %", fontsize=9, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=GREY, length=0)
    return figure


def _describe(label: str, values: FloatArray, seen: BoolArray) -> str:
    """The matrix as text: mean accuracy over seen and over unseen pairs."""
    known = (values[mask & np.isfinite(values)] for mask in (seen, ~seen))
    means = [f"{100 * chosen.mean():.1f} %" if chosen.size else "no value" for chosen in known]
    return f"{label}: {means[0]} over seen pairs, {means[1]} over unseen ones."
