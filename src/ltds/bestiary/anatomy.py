"""From a kind and a pose to a figure. Each plan of a body is a function; the attributes choose which."""

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
    _plan(kind)(drawn, Measures.of(kind, pose))
    return drawn


def _plan(kind: Kind) -> Callable[[Figure, Measures], None]:
    if kind.legs >= 6:
        return jointed.draw
    if kind.legs == 4:
        return walkers.draw
    if kind.legs == 2:
        return birds.draw
    return swimmers.swim if kind.fins else swimmers.crawl
