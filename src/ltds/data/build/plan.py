"""Plan: which images a dataset is going to hold, of which class, domain and split. Builders make it, `dataset` ends it.

The images stay where they are: `source` in the dataset's folder is a link to them, so that the manifest's paths, and
with them its checksum, are the same on every machine. Stylised images will lie in `images/<style>/`.
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
    """What every builder can be told."""

    damaged: Literal["refuse", "leave-out", "unchecked"] = Field(
        default="refuse",
        description="images that cannot be decoded: stop and name them, leave them out, or do not look",
    )


def variant(name: str, config: BuildConfig, without: Collection[str] = ()) -> str:
    """The name of one of the paper's datasets, and behind it each setting that is not the paper's.

    Reports print the paper's numbers beside a dataset of its name, so another dataset must have another. `seed` and
    `damaged` are not told: another draw is still the same dataset. A setting of several values shows as a digest.
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
    """The rows of a dataset to be; `styles` holds each domain's, "" for images as they are.

    `notes` are sentences that a reader of the dataset's numbers must know: told after the build and by 'data info'.
    """

    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    where: str
    licence: str = "unknown"
    styles: tuple[str, ...] = ()
    test_repeats: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    domain_ids: list[int] = field(default_factory=list)
    split_ids: list[int] = field(default_factory=list)

    def add(self, image: str, label: int, domain: int, split: str) -> None:
        """Take in an image of the source, as its domain shows it. Its name is kept once, in the manifest's path."""
        self.paths.append(self.prefixes[domain] + image)
        self.labels.append(label)
        self.domain_ids.append(domain)
        self.split_ids.append(SPLITS.index(split))

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """The folder that each domain's images lie in, below the dataset's own."""
        styles = self.styles or ("",) * len(self.domains)
        return tuple(f"images/{style_folder(style)}/" if style else f"{LINK}/" for style in styles)

    def image(self, row: int) -> str:
        """The name of a row's image in the source."""
        return self.paths[row].removeprefix(self.prefixes[self.domain_ids[row]])

    def images(self) -> Iterator[str]:
        """The images of the source, each once; a test row that repeats another is passed over."""
        repeated = set(self.paths) if self.test_repeats else None
        for row, path in enumerate(self.paths):
            if repeated is None or path in repeated:
                yield self.image(row)
            if repeated is not None:
                repeated.discard(path)


def style_folder(style: str) -> str:
    """The folder of a style: 'hayao' for 'hayao', 'cartoon' for 'classical:cartoon'."""
    return style.rpartition(":")[2].lower()
