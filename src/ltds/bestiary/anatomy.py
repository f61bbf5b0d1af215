"""From a kind and a pose to a figure. Each type of body is a function, chosen by the attributes."""

from __future__ import annotations

from collections.abc import Callable

from ltds.bestiary.bodies import birds, jointed, swimmers, walkers
from ltds.bestiary.figure import Figure
from ltds.bestiary.kinds import Kind
from ltds.bestiary.measures import Measures
from ltds.bestiary.pose import Pose


def figure(kind: Kind, pose: Pose) -> Figure:
    """The shapes of one creature in its own frame, facing right."""
    drawn = Figure()
    _body(kind)(drawn, Measures.of(kind, pose))
    return drawn


def _body(kind: Kind) -> Callable[[Figure, Measures], None]:
    if kind.legs >= 6:
        return jointed.draw
    if kind.legs == 4:
        return walkers.draw
    if kind.legs == 2:
        return birds.draw
    return swimmers.swim if kind.fins else swimmers.crawl
