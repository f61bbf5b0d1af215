"""t-SNE of test features: do they cluster by class or by domain?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.arrays import FloatArray, IntArray
from ltds.evaluation.features import FeatureTable
from ltds.reporting.class_accuracy import head_to_tail
from ltds.reporting.figures.canvas import GREY, INK, add_legend, new_figure, shortened, style
from ltds.reporting.figures.context import FigureContext, run_note, stored_features
from ltds.reporting.figures.drawing import MODEL_INTERNALS, Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.figures.tsne import tsne
from ltds.reporting.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FeatureMap:
    """The images of a method: points (N,2), domain ids (N,), and ranks of the classes (N,), 0 for the most frequent."""

    points: FloatArray
    domains: IntArray
    ranks: IntArray


IMAGES = 600  # of a map: more take long, and cover each other


def draw(context: FigureContext) -> Iterator[Drawing]:
    runs = context.compared_runs
    tables = {label: table for label, run in runs.items() if (table := stored_features(run))}
    if not tables:
        return
    projected = {label: feature_map(runs[label], table) for label, table in tables.items()}
    maps = {label: one for label, (one, _) in projected.items()}
    technique = next(iter(projected.values()))[1]
    task = next(iter(runs.values())).task
    names = [f"{name} (held out)" if name == task.held_out else name for name in task.domains]
    count = len(next(iter(maps.values())).points)
    yield Drawing(
        embedding_map(maps, names, len(task.classes)),
        f"Test features ({technique})",
        "Top: coloured by domain; bottom: by class. If features ignore the domain, colours mix at the top and form "
        f"clusters at the bottom. The same {count} test images for each method. {run_note(runs)}",
        f"{technique} of the features of {count} test images for {', '.join(maps)}.",
        MODEL_INTERNALS,
    )


def feature_map(run: Run, table: FeatureTable) -> tuple[FeatureMap, str]:
    """The first images of the table in two dimensions, and the technique that was used."""
    rank = np.empty(len(run.task.classes), dtype=np.int64)
    rank[head_to_tail(run.task.class_counts)] = np.arange(len(rank))
    points, technique = project_to_plane(table.features[:IMAGES])
    return FeatureMap(points, table.domains[:IMAGES], rank[table.labels[:IMAGES]]), technique


def embedding_map(maps: Mapping[str, FeatureMap], domains: Sequence[str], classes: int) -> Figure:
    """A column for each method: at the top its images coloured by domain, at the bottom by class, head to tail."""
    figure = new_figure(max(5.5, 3.3 * len(maps) + 0.6), 6.8)
    panels = figure.subplots(2, len(maps), squeeze=False)
    for column, (method, one) in enumerate(maps.items()):
        upper, lower = panels[:, column]
        upper.set_title(shortened(method, 40), fontsize=9, color=INK, loc="left", parse_math=False)
        size = 60 / max(1, len(one.points) / 150) ** 0.6
        for domain in range(len(domains)):
            colour, _, marker = style(domain)
            points = one.points[one.domains == domain]
            upper.scatter(*points.T, s=size, color=colour, marker=marker, alpha=0.75, linewidths=0, zorder=1)
        limits = {"vmin": 0, "vmax": max(1, classes - 1)}
        image = lower.scatter(*one.points.T, s=size, c=one.ranks, cmap="viridis", linewidths=0, zorder=1, **limits)
        for axes in (upper, lower):
            _bare(axes)
            axes.set_gid(tag(method=method))
            axes.set_rasterization_zorder(1.5)  # hundreds of points are smaller as pixels
    add_legend(figure, panels[0, 0].collections[: len(domains)], domains, columns=5)
    bar = figure.colorbar(image, ax=list(panels[1]), fraction=0.025, pad=0.02, ticks=[0, max(1, classes - 1)])
    bar.ax.invert_yaxis()
    bar.ax.set_yticklabels(["head", "tail"])
    bar.ax.tick_params(labelsize=8, colors=GREY, length=0)
    bar.outline.set_visible(False)
    return figure


def project_to_plane(features: NDArray[np.floating]) -> tuple[FloatArray, str]:
    """(N,2) points, the same each time, and the technique: t-SNE, unless there are too few. features (N,D).

    t-SNE gets the first 50 principal components, as its authors recommend.
    """
    if len(features) < 5:
        return principal(features, 2), "principal components"
    main = principal(features, 50)
    start = main[:, :2] / max(float(main[:, 0].std()), 1e-12) * 1e-4
    return tsne(main, start, min(30.0, (len(features) - 1) / 3)), "t-SNE"


def principal(features: NDArray[np.floating], count: int) -> FloatArray:
    """(N, 2..count) the features (N,D) along the axes of largest variance."""
    values = features.astype(np.float64)
    centred = values - values.mean(axis=0)
    if len(values) <= values.shape[1]:  # the smaller of the two matrices of products has the same components
        spread, sides = np.linalg.eigh(centred @ centred.T)
        components = (sides * np.sqrt(np.maximum(spread, 0)))[:, ::-1][:, :count]
    else:
        components = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :count]
    return np.pad(components, ((0, 0), (0, max(0, 2 - components.shape[1]))))


def _bare(axes: Axes) -> None:
    """No ticks: the axes of t-SNE have no meaning."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#e3e5e8")
