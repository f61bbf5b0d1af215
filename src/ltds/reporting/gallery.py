"""The figures of a page: in parts that are shown, folded away, or shown one at a time."""

from __future__ import annotations

from dataclasses import dataclass

from ltds.reporting.answer import Answer
from ltds.reporting.dataset import Dataset
from ltds.reporting.pictures import pictures

MANY_PICTURES = 6  # more than these are folded away, but for those that everyone looks at


@dataclass(frozen=True)
class Picture:
    """A figure as the page shows it: a data address, a caption that says what to see, and words instead of it.

    `method`, `held_out`: the only one it is drawn of, "" where it is drawn of several.
    """

    source: str
    title: str
    caption: str
    alt: str
    method: str = ""
    held_out: str = ""


@dataclass(frozen=True)
class Part:
    """Pictures that belong together. `differ`: what a reader chooses one of them by, "" where all are shown."""

    name: str
    pictures: tuple[Picture, ...]
    folded: bool

    @property
    def differ(self) -> str:
        if len(self.pictures) > 1:
            if all(picture.method for picture in self.pictures):
                return "Method"
            if all(picture.held_out for picture in self.pictures):
                return "Held-out domain"
        return ""


def parts(dataset: Dataset, found: Answer, reference: str | None) -> tuple[Part, ...]:
    """What everyone looks at, then the other parts; each figure is let go as soon as it is drawn."""
    gathered: dict[str, list[Picture]] = {"": []}
    for d in pictures(dataset, found, reference):
        picture = Picture(d.source(), d.title, d.caption, d.alt, d.method, d.held_out)
        gathered.setdefault(d.part, []).append(picture)
    many = sum(map(len, gathered.values())) > MANY_PICTURES
    return tuple(Part(name, tuple(members), many and name != "") for name, members in gathered.items() if members)
