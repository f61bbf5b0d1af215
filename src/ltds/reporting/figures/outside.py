"""Figures from outside the package: one that fails is named on the page instead of taking the report with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.drawing import Drawing


@dataclass(eq=False)
class GuardedFigure:
    """A user's function that draws; `problems` has a sentence for each dataset where it failed."""

    function: ReportFigure
    problems: list[str] = field(default_factory=list)

    def __call__(self, context: FigureContext) -> Iterator[Drawing]:
        try:
            for drawing in self.function(context):
                if not isinstance(drawing, Drawing):
                    raise TypeError(f"it yields a {type(drawing).__name__} instead of a Drawing")
                drawing.drawn()  # where it is a function, that may fail as well
                yield drawing
        except Exception as error:  # it is the user's code, which may fail in any way
            name = getattr(self.function, "__name__", repr(self.function))
            sentence = (
                f"The extra figure '{name}' of '{context.dataset.name}' is missing or incomplete: it failed with "
                f"{type(error).__name__}: {error}. Expected a function of the context that yields drawings."
            )
            if sentence not in self.problems:  # a report may draw it again, for a file
                self.problems.append(sentence)


def figure_problems(figures: Sequence[ReportFigure]) -> list[str]:
    """What went wrong in figures that were drawn so far."""
    return [problem for figure in figures if isinstance(figure, GuardedFigure) for problem in figure.problems]
