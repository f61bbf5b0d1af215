"""Cost against quality: how much more a better method costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.answer import ACC_U
from ltds.reporting.cost import cost_of, times_are_noise
from ltds.reporting.figures.canvas import (
    GREY,
    INK,
    PALE,
    add_legend,
    clean_axes,
    few_ticks,
    legend_rows,
    new_figure,
    style,
)
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.cost_svg import cost_svg
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.inline import tag
from ltds.reporting.legend import NOISE
from ltds.reporting.result_table import Column, cell_of, detail_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SPAN = 10.0  # percentage points
SECONDS, PARAMETERS = "Seconds per step", "Parameters"


def draw(context: FigureContext) -> Iterator[Drawing]:
    """Seconds and parameters against Acc-U, if at least two methods have both."""
    dataset, group = context.dataset, detail_group(context.dataset)
    methods = list(dataset.rows)
    quality = _floats(cell_of(dataset, label, Column(group, ACC_U)).mean for label in methods)
    costs = [cost_of(runs) for runs in dataset.rows.values()]
    kinds = {SECONDS: _floats(c.seconds for c in costs), PARAMETERS: _floats(c.parameters for c in costs)}
    shown = {name: values for name, values in kinds.items() if np.isfinite(values + quality).sum() > 1}
    if not shown:
        return
    noise = SECONDS in shown and times_are_noise(costs)
    spreads = {SECONDS: [c.spread for c in costs]}
    fronts = [name for name in shown if not (noise and name == SECONDS)]
    joined = {name: pareto_front(shown[name], quality) for name in fronts}
    best = {name: ", ".join(methods[m] for m in front) for name, front in joined.items()}
    times = NOISE if noise else "Bars: from the first to the third quartile of the steps."
    yield Drawing(
        partial(cost, shown, quality, ACC_U.name, methods, spreads, fronts),
        "Cost against quality",
        "Up and to the left is better. A line joins the methods that are better than every cheaper one "
        f"(Acc-U: {group}). {times if SECONDS in shown else ''}".strip(),
        "; ".join(f"{name}: on the line are {names}" for name, names in best.items()) + "." + f" {NOISE}" * noise,
        page_svg=cost_svg(shown, quality, f"{ACC_U.name} %", methods, spreads, joined, SPAN),
    )


def cost(
    costs: Mapping[str, FloatArray],
    quality: FloatArray,
    measure: str,
    methods: Sequence[str],
    spreads: Mapping[str, Sequence[tuple[float, float] | None]] | None = None,
    fronts: Sequence[str] | None = None,
) -> Figure:
    """A panel for each kind of cost (M,): a mark for each method at its cost and its quality (M,) in percent.

    NaN: no value, no mark. `spreads`: low and high of each method, for some kinds. A line joins the methods that are
    better than every cheaper one, in the panels `fronts`, by default in all.
    """
    figure = new_figure(9, 3.3 + legend_rows(methods))
    panels = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, costs.items(), strict=True):
        clean_axes(axes)
        best = pareto_front(values, quality) if fronts is None or name in fronts else []
        axes.plot(values[best], quality[best], color=PALE, linewidth=1.2, drawstyle="steps-post", zorder=1)
        _marks(axes, values, quality, methods, (spreads or {}).get(name, [None] * len(methods)))
        axes.set_xlabel(name, fontsize=9, color=GREY)
    _widen(panels[0])
    panels[0].set_ylabel(f"{measure} %", fontsize=9, color=INK)
    handles = [panels[0].plot([], [], style(m)[2], color=style(m)[0])[0] for m in range(len(methods))]
    add_legend(figure, handles, methods, "outside lower center", methods=True)
    return figure


def pareto_front(values: FloatArray, quality: FloatArray) -> list[int]:
    """Indices of the methods better than all that cost no more, cheapest first. values, quality (M,)."""
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality))
    front: list[int] = []
    for m in sorted(known, key=lambda m: (values[m], -quality[m])):
        if not front or quality[m] > quality[front[-1]]:
            front.append(int(m))
    return front


def _marks(
    axes: Axes,
    values: FloatArray,
    quality: FloatArray,
    methods: Sequence[str],
    spreads: Sequence[tuple[float, float] | None],
) -> None:
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality)).tolist()
    for m in known:
        colour, _, marker = style(m)
        shown: dict[str, Any] = {"color": colour, "gid": tag(method=methods[m])}
        spread = spreads[m]
        if spread:
            axes.hlines(quality[m], *spread, linewidth=1.4, alpha=0.6, zorder=2, **shown)
        axes.plot(values[m], quality[m], marker, markersize=7, zorder=2, **shown)
    axes.margins(0.12)
    ends = [end for m in known for end in (spreads[m] or (values[m],))]
    _scale_x(axes, min(ends, default=0.0), max(ends, default=1.0))


def _widen(axes: Axes) -> None:
    """At least SPAN points between the ends of the y axis, so that a small difference looks small."""
    low, high = axes.get_ylim()
    missing = max(0.0, SPAN - (high - low)) / 2
    axes.set_ylim(low - missing, high + missing)


def _scale_x(axes: Axes, least: float, most: float) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    if 0 < 10 * least < most:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=6))
        axes.xaxis.set_major_formatter(EngFormatter(sep="\u2009"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, 1.12 * most or 1)  # from 0, so a small difference looks small
        few_ticks(axes)


def _floats(values: Iterable[float | None]) -> FloatArray:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
