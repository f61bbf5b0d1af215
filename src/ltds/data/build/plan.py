"""Plan: which images a dataset will have, and the class, domain and split of each. Builders make it.

The images are not copied: `source` in the dataset's folder is a link to them, so that the manifest's paths, and with
them its checksum, are the same on every machine. Stylised images go to `images/<style>/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from ltds.core.config import Settings
from ltds.data.build.source import LINK
from ltds.data.splits import SPLITS


class BuildConfig(Settings):
    """Settings that every builder has."""

    damaged: Literal["refuse", "leave-out", "unchecked"] = Field(
        default="refuse",
        description="images that cannot be decoded: stop and name them, leave them out, or do not check",
    )


def variant(name: str, config: BuildConfig, without: Collection[str] = ()) -> str:
    """The name of one of the paper's datasets, followed by each setting that differs from the paper's.

    Reports compare a dataset of this name with the paper's numbers, so a different dataset needs a different name.
    `seed` and `damaged` do not count: another random draw is still the same dataset. Tuples are shown as a hash.
    """
    changed = [name]
    for setting, field_ in type(config).model_fields.items():
        value = getattr(config, setting)
        if setting in {"seed", "damaged", *without} or field_.is_required() or value == field_.default:
            continue
        text = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:6] if isinstance(value, tuple) else str(value)
        changed.append(f"{setting.replace('_', '-')}-{text}")
    return "-".join(changed)


@dataclass
class Plan:
    """The rows of a dataset to be built; `styles` has the style of each domain, "" for the original images.

    `where` says where to get the images. `notes` are sentences for readers of the dataset's numbers, printed after the
    build and by `ltds data info`; `facts` are values for them.
    """

    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    where: str
    licence: str = "unknown"
    styles: tuple[str, ...] = ()
    test_repeats: bool = False
    whole_held_out: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    domain_ids: list[int] = field(default_factory=list)
    split_ids: list[int] = field(default_factory=list)

    def add(self, image: str, label: int, domain: int, split: str) -> None:
        """Add an image of the source, in the style of its domain; only the path in the manifest is kept."""
        self.paths.append(self.prefixes[domain] + image)
        self.labels.append(label)
        self.domain_ids.append(domain)
        self.split_ids.append(SPLITS.index(split))

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """The folder of each domain's images, relative to the dataset's folder."""
        styles = self.styles or ("",) * len(self.domains)
        return tuple(f"images/{style_folder(style)}/" if style else f"{LINK}/" for style in styles)

    def image(self, row: int) -> str:
        """The name of a row's image in the source."""
        return self.paths[row].removeprefix(self.prefixes[self.domain_ids[row]])

    def images(self) -> Iterator[str]:
        """The images of the source, each once, even if a test row repeats another row."""
        repeated = set(self.paths) if self.test_repeats else None
        for row, path in enumerate(self.paths):
            if repeated is None or path in repeated:
                yield self.image(row)
            if repeated is not None:
                repeated.discard(path)


def style_folder(style: str) -> str:
    """The folder of a style: 'hayao' for 'hayao', 'cartoon' for 'classical:cartoon'."""
    return style.rpartition(":")[2].lower()
