"""Accuracy from head to tail: how each method copes with classes that have few training images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.class_accuracy import class_accuracy, head_to_tail
from ltds.reporting.figures.axes_svg import (
    STROKES,
    WIDTH,
    Scale,
    bars,
    document,
    legend_height,
    marks,
    method_legend,
    of_method,
    polyline,
    y_axis,
)
from ltds.reporting.figures.canvas import (
    INK,
    PALE,
    add_legend,
    clean_axes,
    label_classes,
    legend_rows,
    new_figure,
    style,
)
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.figures.matrix_svg import column_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT, UPPER, LOWER = 44.0, 190.0, 60.0  # points: numbers and names of the axes, accuracy, images


def draw(context: FigureContext) -> Iterator[Drawing]:
    dataset = context.comparable.dataset
    images, accuracy, trained = class_accuracy(dataset)
    if trained:
        shown = images, accuracy, list(dataset.rows), [dataset.classes[c] for c in trained]
        yield Drawing(
            partial(frequency, *shown),
            "Accuracy from head to tail",
            "A line that falls to the right is a method that is worse on rare classes.",
            "Accuracy of each class for each method; the table of classes below has the same numbers.",
            page_svg=frequency_svg(*shown),
        )


def frequency_svg(
    images: NDArray[np.float64], accuracy: NDArray[np.float64], methods: Sequence[str], classes: Sequence[str]
) -> str:
    """As `frequency`, for the page."""
    order = head_to_tail(images)
    upper = legend_height(methods) + 8
    lower = upper + UPPER + 10
    wide = (WIDTH - LEFT - 4) / len(order)
    x = LEFT + wide * (np.arange(len(order), dtype=np.float64) + 0.5)
    percent = Scale(-2, 102, upper + UPPER, upper)
    count = Scale(0.7 * max(1.0, images.min()), 1.3 * max(1.0, images.max()), lower + LOWER, lower, log=True)
    below, labels = column_labels([classes[c] for c in order], LEFT, wide, lower + LOWER)
    return document(
        lower + LOWER + below,
        [
            *method_legend(methods, 0, marked=False),
            *y_axis(percent, LEFT, WIDTH - 4, "Accuracy %"),
            *(
                part
                for m, row in enumerate(accuracy[:, order] * 100)
                for part in _method(m, methods[m], x, row, percent)
            ),
            *y_axis(count, LEFT, WIDTH - 4, "Images", 4),
            bars(x, count(np.maximum(count.low, images[order])), count.start, 0.75 * wide, PALE),
            *labels,
        ],
    )


def _method(m: int, name: str, x: NDArray[np.float64], row: NDArray[np.float64], scale: Scale) -> Iterator[str]:
    """The classes of one method as dots, and their running mean as a line."""
    colour, dash, _ = style(m)
    mean = running_mean(row, max(3, len(row) // 10))
    yield marks(x, scale(row), "o", 3, colour, f' stroke-opacity=".35"{of_method(name)}')
    yield polyline(x, scale(mean), f'stroke="{colour}" stroke-width="1.8"{STROKES[dash]}{of_method(name)}')


def frequency(
    images: NDArray[np.float64], accuracy: NDArray[np.float64], methods: Sequence[str], classes: Sequence[str]
) -> Figure:
    """A line for each method over classes sorted by training images. images (C,), accuracy (M,C), NaN: no value.

    Dots are classes; the line is a running mean over about a tenth of them.
    """
    order = head_to_tail(images)
    figure = new_figure(9, 4.4 + legend_rows(methods))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    clean_axes(upper)
    clean_axes(lower)
    handles = []
    for m, row in enumerate(accuracy[:, order] * 100):
        colour, dash, _ = style(m)
        shown: dict[str, Any] = {"color": colour, "gid": tag(method=methods[m])}
        upper.scatter(range(len(row)), row, s=9, alpha=0.35, linewidths=0, rasterized=len(row) > 300, **shown)
        handles += upper.plot(running_mean(row, max(3, len(row) // 10)), dash, linewidth=1.8, **shown)
    upper.set_ylim(-2, 102)
    upper.set_ylabel("Accuracy %", fontsize=9, color=INK)
    add_legend(figure, handles, methods, methods=True)
    lower.bar(range(len(order)), images[order], color=PALE, width=0.75)
    lower.set_yscale("log")
    lower.tick_params(axis="y", which="minor", left=False)
    lower.set_ylabel("Images", fontsize=9, color=INK)
    label_classes(lower, [classes[c] for c in order])
    return figure


def running_mean(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """(C,) mean over the `width` nearest entries, fewer at the ends; NaN entries are ignored."""
    known = np.isfinite(values)
    window = np.ones(width)
    total = np.convolve(np.where(known, values, 0), window, mode="full")
    count = np.convolve(known.astype(np.float64), window, mode="full")
    middle = slice((width - 1) // 2, (width - 1) // 2 + len(values))
    mean = np.full(len(values), np.nan)
    np.divide(total[middle], count[middle], out=mean, where=count[middle] > 0)
    return mean
