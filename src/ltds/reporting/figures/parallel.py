"""The figures of a page: those that matplotlib draws, in several processes if there are many runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ltds.core.parallel import run_chunks
from ltds.core.processor import cores
from ltds.core.progress import Advance, ignore_progress
from ltds.reporting.figures import embedding_map, open_set, reliability, retrieval, similarity
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.drawing import Drawing

WORTH_PROCESSES = 20  # runs: with fewer, starting processes takes as long as drawing
NUMBERS = 1000  # reserved for the drawings of one figure, so that no process needs to know how many the others make
# What matplotlib draws: each line in one process, because its figures read the same files; what takes longest is first.
SLOW: tuple[tuple[ReportFigure, ...], ...] = (
    (embedding_map.draw,),
    (open_set.draw, reliability.draw),
    (similarity.draw,),
    (retrieval.draw,),
)

Chunk = tuple[tuple[int, ReportFigure], ...]  # figures with their places in the page


@dataclass(frozen=True)
class DrawnFigure:
    """A drawing as an element of a page, with its words."""

    element: str
    title: str
    caption: str
    group: str
    method: str
    held_out: str


def drawn_figures(context: FigureContext, figures: Sequence[ReportFigure], first: int) -> Iterator[DrawnFigure]:
    """All figures for which the runs have data, in order. `first`: number of the first, for ids unique in a page."""
    runs = sum(map(len, context.dataset.rows.values()))
    placed = tuple(enumerate(figures))
    if runs < WORTH_PROCESSES or cores() == 1:
        for one in placed:
            for _, members in draw_chunk(context, first, (one,)):
                yield from members
        return
    chunks = [*_chunks(placed)]
    found: dict[int, list[DrawnFigure]] = {}
    for _, results in run_chunks(partial(draw_chunk, context, first), chunks, cores(), ignore_progress, take_part=True):
        found.update(results)
    for place, figure in placed:
        if place not in found:  # plain SVG, or from outside the package: another process may not know its function
            found.update(draw_chunk(context, first, ((place, figure),)))
        yield from found[place]


def draw_chunk(
    context: FigureContext, first: int, chunk: Chunk, advance: Advance = ignore_progress
) -> list[tuple[int, list[DrawnFigure]]]:
    """The drawings of these figures, by the place of the figure; each is freed as soon as it is converted."""
    return [
        (place, [_converted(d, first + NUMBERS * place + i) for i, d in enumerate(figure(context))])
        for place, figure in chunk
    ]


def _chunks(placed: Sequence[tuple[int, ReportFigure]]) -> Iterator[Chunk]:
    for together in SLOW:
        if chunk := tuple((place, figure) for place, figure in placed if figure in together):
            yield chunk


def _converted(drawing: Drawing, number: int) -> DrawnFigure:
    words = (drawing.title, drawing.caption, drawing.group, drawing.method, drawing.held_out)
    return DrawnFigure(drawing.html(number), *words)
