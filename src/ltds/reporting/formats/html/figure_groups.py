"""The figures of the page, in groups that are visible, folded, or shown one figure at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ltds.reporting.figures import FIGURES, drawings
from ltds.reporting.figures.context import FigureContext, ReportFigure

MANY_FIGURES = 6  # with more figures than this, groups with a heading are folded


@dataclass(frozen=True)
class PageFigure:
    """A figure as the page shows it: data URL, title, caption and text alternative.

    `method`, `held_out`: set if the figure shows a single method or domain.
    """

    source: str
    title: str
    caption: str
    alt: str
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
        if len(self.figures) > 1:
            if all(figure.method for figure in self.figures):
                return "Method"
            if all(figure.held_out for figure in self.figures):
                return "Held-out domain"
        return ""


def figure_groups(context: FigureContext, figures: Sequence[ReportFigure] = FIGURES) -> tuple[FigureGroup, ...]:
    """The figures that are always visible, then the other groups; a figure is freed as soon as it is converted."""
    groups: dict[str, list[PageFigure]] = {"": []}
    for d in drawings(context, figures):
        figure = PageFigure(d.data_url(), d.title, d.caption, d.alt, d.method, d.held_out)
        groups.setdefault(d.group, []).append(figure)
    many = sum(map(len, groups.values())) > MANY_FIGURES
    return tuple(FigureGroup(name, tuple(members), many and name != "") for name, members in groups.items() if members)
