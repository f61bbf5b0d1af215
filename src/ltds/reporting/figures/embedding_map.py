"""t-SNE of test features: does a method sort images by class, or by domain?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import INK, QUIET, blank, key, shortened, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cloud:
    """A method's images: places (N,2), domains (N,) as indices of names, ranks (N,), 0 for the most frequent class."""

    places: Floats
    domains: NDArray[np.int64]
    ranks: NDArray[np.int64]


def embedding_map(clouds: Mapping[str, Cloud], domains: Sequence[str], classes: int) -> Figure:
    """A column for each method: above its images coloured by domain, below the same images by class, head to tail."""
    figure = blank(max(5.5, 3.3 * len(clouds) + 0.6), 6.8)
    panels = figure.subplots(2, len(clouds), squeeze=False)
    for column, (method, cloud) in enumerate(clouds.items()):
        upper, lower = panels[:, column]
        upper.set_title(shortened(method, 40), fontsize=9, color=INK, loc="left", parse_math=False)
        size = 60 / max(1, len(cloud.places) / 150) ** 0.6
        for domain in range(len(domains)):
            colour, _, marker = style(domain)
            own = cloud.places[cloud.domains == domain]
            upper.scatter(*own.T, s=size, color=colour, marker=marker, alpha=0.75, linewidths=0)
        limits = {"vmin": 0, "vmax": max(1, classes - 1)}
        image = lower.scatter(*cloud.places.T, s=size, c=cloud.ranks, cmap="viridis", linewidths=0, **limits)
        for axes in (upper, lower):
            _bare(axes)
    key(figure, panels[0, 0].collections[: len(domains)], domains, "outside upper left", columns=5)
    bar = figure.colorbar(image, ax=list(panels[1]), fraction=0.025, pad=0.02, ticks=[0, max(1, classes - 1)])
    bar.ax.invert_yaxis()
    bar.ax.set_yticklabels(["head", "tail"])
    bar.ax.tick_params(labelsize=8, colors=QUIET, length=0)
    bar.outline.set_visible(False)
    return figure


def flattened(features: NDArray[np.floating]) -> tuple[Floats, str]:
    """(N,2) places, the same each time, and how they were found: by t-SNE, where scikit-learn is installed.

    features (N,D). t-SNE gets their 50 principal components, as its authors do: they keep what it can show.
    """
    try:
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits  # comes with scikit-learn
    except ImportError:
        return principal(features, 2), "principal components"
    if len(features) < 5:
        return principal(features, 2), "principal components"
    with threadpool_limits(1):  # on a busy machine threads wait for each other ten times as long as they work
        main = principal(features, 50)
        start = main[:, :2] / max(float(main[:, 0].std()), 1e-12) * 1e-4
        perplexity = min(30.0, (len(features) - 1) / 3)
        layout = TSNE(perplexity=perplexity, init=start, random_state=0, max_iter=500, n_jobs=1)
        return np.asarray(layout.fit_transform(main), dtype=np.float64), "t-SNE"


def principal(features: NDArray[np.floating], count: int) -> Floats:
    """(N, 2..count) the features (N,D) along the axes in which they vary most."""
    cloud = features.astype(np.float64)
    centred = cloud - cloud.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    found = centred @ axes[:count].T
    return np.pad(found, ((0, 0), (0, max(0, 2 - found.shape[1]))))


def _bare(axes: Axes) -> None:
    """No ticks: the axes of t-SNE mean nothing."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#e3e5e8")
