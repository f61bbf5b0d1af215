"""The figures of a report. One module per figure: the data it takes from runs, how it draws, and its words.

To add a figure, write a module with a function `draw(context) -> Iterator[Drawing]` and list it in FIGURES. A figure
outside this package is passed to `ltds.report(extra_figures=[draw])`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ltds.reporting.figures import (
    cost,
    critical_difference,
    distribution,
    embedding_map,
    frechet,
    frequency,
    open_set,
    pairs,
    reliability,
    retrieval,
    similarity,
    training,
)
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.drawing import Drawing

# In reading order.
FIGURES: tuple[ReportFigure, ...] = (
    distribution.draw,
    frequency.draw,
    critical_difference.draw,
    pairs.draw,
    cost.draw,
    open_set.draw,
    reliability.draw,
    frechet.draw,
    embedding_map.draw,
    similarity.draw,
    retrieval.draw,
    training.draw,
)

# These show one run of some methods; all others, every run.
OF_SINGLE_RUNS: tuple[ReportFigure, ...] = (
    open_set.draw,
    reliability.draw,
    embedding_map.draw,
    similarity.draw,
    retrieval.draw,
)


def drawings(context: FigureContext, figures: Sequence[ReportFigure] = FIGURES) -> Iterator[Drawing]:
    """All drawings for which the runs have data, in the order of `figures`."""
    for figure in figures:
        yield from figure(context)
