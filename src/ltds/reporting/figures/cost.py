"""Cost against quality: what a better method takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.figures.canvas import INK, QUIET, blank, key, quiet, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def cost(costs: Mapping[str, Floats], quality: Floats, measure: str, methods: Sequence[str]) -> Figure:
    """A panel for each kind of cost, (M,) each: a mark for each method at its cost and its quality (M,) in percent.

    NaN is no value, and no mark. The line joins methods that no cheaper one equals.
    """
    figure = blank(9, 3.3 + 0.2 * -(-len(methods) // 4))
    panels = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, costs.items(), strict=True):
        quiet(axes)
        _marks(axes, values, quality)
        axes.set_xlabel(name, fontsize=9, color=QUIET)
    panels[0].set_ylabel(f"{measure} %", fontsize=9, color=INK)
    handles = [panels[0].plot([], [], style(m)[2], color=style(m)[0])[0] for m in range(len(methods))]
    key(figure, handles, methods, "outside lower center")
    return figure


def front(values: Floats, quality: Floats) -> list[int]:
    """The methods, from cheap to dear, of which each is better than all that cost no more. values, quality (M,)."""
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality))
    found: list[int] = []
    for m in sorted(known, key=lambda m: (values[m], -quality[m])):
        if not found or quality[m] > quality[found[-1]]:
            found.append(int(m))
    return found


def _marks(axes: Axes, values: Floats, quality: Floats) -> None:
    from matplotlib.ticker import EngFormatter

    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality))
    best = front(values, quality)
    axes.plot(values[best], quality[best], color="#c4c8cf", linewidth=1.2, drawstyle="steps-post", zorder=1)
    for m in known:
        colour, _, marker = style(int(m))
        axes.plot(values[m], quality[m], marker, color=colour, markersize=7, zorder=2)
    axes.margins(0.12)
    least, most = (values[known].min(), values[known].max()) if len(known) else (0.0, 1.0)
    if 0 < 10 * least < most:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.12 * most or 1)  # from 0, so that a small difference looks small
    if most >= 1000:
        axes.xaxis.set_major_formatter(EngFormatter(sep="\u2009"))
