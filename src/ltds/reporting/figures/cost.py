"""Cost against quality: how much more a better method costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltds.evaluation.arrays import FloatArray
from ltds.reporting.answer import ACC_U
from ltds.reporting.cost import cost_of
from ltds.reporting.figures.canvas import GREY, INK, clean_axes, legend, new_figure, style
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.result_table import Column, cell_of, detail_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(context: FigureContext) -> Iterator[Drawing]:
    """Seconds and parameters against Acc-U, if at least two methods have both."""
    dataset, group = context.dataset, detail_group(context.dataset)
    methods = list(dataset.rows)
    quality = _floats(cell_of(dataset, label, Column(group, ACC_U)).mean for label in methods)
    costs = [cost_of(runs) for runs in dataset.rows.values()]
    kinds = {"Seconds per step": _floats(c.seconds for c in costs), "Parameters": _floats(c.parameters for c in costs)}
    shown = {name: values for name, values in kinds.items() if np.isfinite(values + quality).sum() > 1}
    if not shown:
        return
    best = {name: ", ".join(methods[m] for m in pareto_front(values, quality)) for name, values in shown.items()}
    yield Drawing(
        cost(shown, quality, ACC_U.name, methods),
        "Cost against quality",
        "Up and to the left is better. The line joins the methods that are better than every cheaper one "
        f"(Acc-U: {group}).",
        "; ".join(f"{name}: on the line are {names}" for name, names in best.items()) + ".",
    )


def cost(costs: Mapping[str, FloatArray], quality: FloatArray, measure: str, methods: Sequence[str]) -> Figure:
    """A panel for each kind of cost (M,): a mark for each method at its cost and its quality (M,) in percent.

    NaN: no value, no mark. The line joins the methods that are better than every cheaper one.
    """
    figure = new_figure(9, 3.3 + 0.2 * -(-len(methods) // 4))
    panels = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, costs.items(), strict=True):
        clean_axes(axes)
        _marks(axes, values, quality)
        axes.set_xlabel(name, fontsize=9, color=GREY)
    panels[0].set_ylabel(f"{measure} %", fontsize=9, color=INK)
    handles = [panels[0].plot([], [], style(m)[2], color=style(m)[0])[0] for m in range(len(methods))]
    legend(figure, handles, methods, "outside lower center")
    return figure


def pareto_front(values: FloatArray, quality: FloatArray) -> list[int]:
    """Indices of the methods better than all that cost no more, cheapest first. values, quality (M,)."""
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality))
    front: list[int] = []
    for m in sorted(known, key=lambda m: (values[m], -quality[m])):
        if not front or quality[m] > quality[front[-1]]:
            front.append(int(m))
    return front


def _marks(axes: Axes, values: FloatArray, quality: FloatArray) -> None:
    from matplotlib.ticker import EngFormatter

    known = np.flatnonzero(np.isfinite(values) & np.isfinite(quality))
    best = pareto_front(values, quality)
    axes.plot(values[best], quality[best], color="#c4c8cf", linewidth=1.2, drawstyle="steps-post", zorder=1)
    for m in known:
        colour, _, marker = style(int(m))
        axes.plot(values[m], quality[m], marker, color=colour, markersize=7, zorder=2)
    axes.margins(0.12)
    least, most = (values[known].min(), values[known].max()) if len(known) else (0.0, 1.0)
    if 0 < 10 * least < most:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.12 * most or 1)  # from 0, so a small difference looks small
    if most >= 1000:
        axes.xaxis.set_major_formatter(EngFormatter(sep="\u2009"))


def _floats(values: Iterable[float | None]) -> FloatArray:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
