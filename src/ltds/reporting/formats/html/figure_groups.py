"""The figures of the page, in groups that are visible, folded, or shown one figure at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ltds.reporting.figures import FIGURES
from ltds.reporting.figures.context import FigureContext, ReportFigure
from ltds.reporting.figures.parallel import drawn_figures

if TYPE_CHECKING:
    from markupsafe import Markup

MANY_FIGURES = 6  # with more figures than this, groups with a heading are folded


@dataclass(frozen=True)
class PageFigure:
    """A figure as the page shows it: an element that holds it, title and caption.

    `method`, `held_out`: set if the figure shows a single method or domain.
    """

    element: Markup
    title: str
    caption: str
    method: str = ""
    held_out: str = ""


@dataclass(frozen=True)
class FigureGroup:
    """Figures under one heading. `selector`: what the reader selects one of them by; "" if all are shown."""

    name: str
    figures: tuple[PageFigure, ...]
    folded: bool

    @property
    def selector(self) -> str:
        domains = {figure.held_out for figure in self.figures}
        if "" not in domains and len(domains) > 1:
            return "Held-out domain"
        methods = [figure.method for figure in self.figures]
        return "Method" if "" not in methods and len(set(methods)) == len(methods) > 1 and len(domains) == 1 else ""

    @property
    def options(self) -> tuple[str, ...]:
        """What the selector offers."""
        by_domain = self.selector == "Held-out domain"
        return tuple(dict.fromkeys(figure.held_out if by_domain else figure.method for figure in self.figures))


def figure_groups(
    context: FigureContext, figures: Sequence[ReportFigure] = FIGURES, first: int = 0
) -> tuple[FigureGroup, ...]:
    """The figures that are always visible, then the other groups.

    `first`: number of the first figure, so that ids stay unique in a page.
    """
    from markupsafe import Markup

    groups: dict[str, list[PageFigure]] = {"": []}
    for d in drawn_figures(context, figures, first):
        figure = PageFigure(Markup(d.element), d.title, d.caption, d.method, d.held_out)
        groups.setdefault(d.group, []).append(figure)
    many = sum(map(len, groups.values())) > MANY_FIGURES
    return tuple(FigureGroup(name, tuple(members), many and name != "") for name, members in groups.items() if members)
