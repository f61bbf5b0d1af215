"""A figure: the shapes of one creature, back to front, each with the role that colours it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ltds.bestiary.geometry import Point, Rim, Station, oval, smooth_curve, tube_rim


@dataclass(frozen=True)
class Shape:
    """One closed outline, and the role that colours it.

    A role is one of the kind's four colours (main, belly, mark, trim), fur (a darker main), bone, eye or clear.
    Shapes of one `group` have no ink line between them; `marked` ones show the pattern.
    """

    rim: list[Rim]
    role: str
    group: int
    far: bool = False
    marked: bool = False


@dataclass
class Figure:
    """Shapes back to front, and the marks of the pattern, which show only on `marked` shapes."""

    shapes: list[Shape] = field(default_factory=list)
    marks: list[list[Point]] = field(default_factory=list)
    groups: int = 0

    def group(self) -> int:
        """A new group number: what is drawn with it gets its own ink line."""
        self.groups += 1
        return self.groups

    def tube(
        self,
        stations: Sequence[Station],
        role: str,
        *,
        group: int | None = None,
        far: bool = False,
        marked: bool = False,
        steps: int = 3,
    ) -> list[Station]:
        """Add a tube through the stations and return its smoothed stations."""
        curve = smooth_curve(stations, steps)
        number = self.group() if group is None else group
        self.shapes.append(Shape(tube_rim(curve), role, number, far, marked))
        return curve

    def patch(
        self, points: Sequence[Point], role: str, *, group: int | None = None, far: bool = False, marked: bool = False
    ) -> None:
        """Add a flat outline, shaded as one piece around its middle."""
        cx = sum(p[0] for p in points) / len(points)
        cy = sum(p[1] for p in points) / len(points)
        number = self.group() if group is None else group
        self.shapes.append(Shape([(x, y, cx, cy) for x, y in points], role, number, far, marked))

    def ball(self, x: float, y: float, r: float, role: str, *, group: int | None = None, marked: bool = False) -> None:
        """Add a circle."""
        number = self.group() if group is None else group
        rim = [(px, py, x, y) for px, py in oval(x, y, r, r)]
        self.shapes.append(Shape(rim, role, number, False, marked))

    def mark(self, points: list[Point]) -> None:
        self.marks.append(points)
