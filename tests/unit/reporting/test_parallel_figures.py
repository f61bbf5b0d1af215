"""Figures drawn by several processes are those of one process, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ltds.reporting.collection import Collection
from ltds.reporting.figures import cost, critical_difference, distribution, parallel
from ltds.reporting.figures.context import FigureContext
from ltds.reporting.figures.drawing import Drawing
from ltds.reporting.figures.parallel import drawn_figures

FIGURES = (distribution.draw, critical_difference.draw, cost.draw)


def test_the_same_elements_in_the_same_order(grid: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    def outside(context: FigureContext) -> Iterator[Drawing]:
        """A function that no other process can import; matplotlib draws what it yields."""
        yield from (replace(one, title="Mine", page_svg="") for one in distribution.draw(context))

    context = FigureContext(grid.datasets[0])
    figures = (FIGURES[0], outside, *FIGURES[1:])
    alone = list(drawn_figures(context, figures, 7))
    monkeypatch.setattr(parallel, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    monkeypatch.setattr(parallel, "SLOW", ((cost.draw,), FIGURES[:2]))
    assert list(drawn_figures(context, figures, 7)) == alone
    assert [one.title for one in alone].count("Mine") == 1
    assert alone[1].title == "Mine"
    assert 'id="f1007-' in alone[1].element
    assert [one.title for one in drawn_figures(context, (outside,), 7)] == ["Mine"], "nothing for other processes"
