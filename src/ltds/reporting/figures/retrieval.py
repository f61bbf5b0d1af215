"""Top-5 retrieval: the test images nearest to a query in the semantic space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import ABSENT, COLOURS, INK, QUIET, blank, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEIGHBOURS = 5


@dataclass(frozen=True)
class Shot:
    """An image (h,w,3) uint8, None where its file is gone, with its class and domain."""

    image: NDArray[np.uint8] | None
    label: str
    domain: str


@dataclass(frozen=True)
class Retrieved:
    """A query, what lies nearest to it (nearest first), and the domains in which training saw its class."""

    query: Shot
    neighbours: tuple[Shot, ...]
    seen: tuple[str, ...]


def retrieval(rows: Sequence[Retrieved]) -> Figure:
    """A row for each query: where its class was seen, the query, its neighbours. A check is the query's class."""
    figure = blank(9, 1.62 * len(rows) + 0.1)
    ratios = [1.05, *[1] * (NEIGHBOURS + 1)]
    panels = figure.subplots(len(rows), NEIGHBOURS + 2, squeeze=False, width_ratios=ratios)
    for line, row in zip(panels, rows, strict=True):
        _words(line[0], row)
        _shot(line[1], row.query, INK, "query: ")
        for axes, shot in zip(line[2:], row.neighbours, strict=False):
            right = shot.label == row.query.label
            _shot(axes, shot, COLOURS[0] if right else COLOURS[1], "✓ " if right else "✗ ")
        for axes in line[2 + len(row.neighbours) :]:
            axes.axis("off")
    return figure


def nearest(projected: NDArray[np.floating], query: int, count: int = NEIGHBOURS) -> NDArray[np.int64]:
    """(count,) the rows of highest cosine to row `query`, itself left out, ties by index. projected (N,S)."""
    points = projected.astype(np.float64)
    length = np.linalg.norm(points, axis=1)
    cosine = points @ points[query] / np.maximum(length * length[query], 1e-12)
    cosine[query] = -np.inf
    return np.argsort(-cosine.round(12), kind="stable")[: min(count, len(points) - 1)]


def _words(axes: Axes, row: Retrieved) -> None:
    axes.axis("off")
    seen = "\n".join(shortened(name, 18) for name in row.seen[:5]) or "nowhere (open)"
    more = f"\nand {len(row.seen) - 5} more" if len(row.seen) > 5 else ""
    axes.text(0, 1, shortened(row.query.label, 16), fontsize=9, color=INK, va="top", weight="bold", parse_math=False)
    axes.text(0, 0.8, f"seen in\n{seen}{more}", fontsize=7, color=QUIET, va="top", parse_math=False)


def _shot(axes: Axes, shot: Shot, colour: str, mark: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(colour)
    axes.spines[:].set_linewidth(2)
    axes.set_facecolor(ABSENT)
    axes.set_box_aspect(1)
    if shot.image is not None:
        axes.imshow(shot.image, aspect="auto", interpolation="nearest" if shot.image.shape[0] <= 64 else None)
    axes.set_title(mark + shortened(shot.label, 15), fontsize=7.5, color=colour, pad=3, parse_math=False)
    axes.set_xlabel(shortened(shot.domain, 18), fontsize=7, color=QUIET, labelpad=2, parse_math=False)
