"""A folder of images sorted into folders by domain and class (and split) as a dataset."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from pydantic import Field, field_validator, model_validator

from ltds.core.config import Fraction
from ltds.core.errors import ConfigError, DataError, expected, nearest
from ltds.core.progress import SILENT, Progress
from ltds.data.build.dataset import build_dataset
from ltds.data.build.plan import BuildConfig, Plan
from ltds.data.build.source import find_root, folders_in, images_in, some
from ltds.data.build.stratify import draw_splits
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

WHERE = "Name a folder with images in it, and say with --layout what its folders mean, e.g. domain/class."
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "crossval": "val",
    "test": "test",
    "testing": "test",
}
ONE_DOMAIN = "all"
_LEVELS = ("domain", "class", "split")


class DrawConfig(BuildConfig):
    """The shares of images drawn for validation and test, in each (domain, class) pair by itself."""

    val: Fraction = Field(default=0.1, description="share of a pair's images for validation")
    test: Fraction = Field(default=0.2, description="share of a pair's images for test")
    seed: int = Field(default=0, ge=0, description="seed of the drawn splits")

    @model_validator(mode="after")
    def _leaves_some(self) -> DrawConfig:
        if self.val + self.test >= 1:
            got = f"{self.val} + {self.test}"
            raise ValueError(expected("val and test", "less than 1 together", got, "Lower them: the rest trains."))
        return self

    def refuse_drawing(self, why: str) -> None:
        """Raise where a setting of the draw was given, but the splits are."""
        idle = sorted(self.model_fields_set & {"val", "test", "seed"})
        if idle:
            got = ", ".join(idle)
            raise ConfigError(expected("the settings", f"free of draws, as {why}", got, "Leave them out."))


class FolderConfig(DrawConfig):
    """What the folders below the source mean, from the outermost in."""

    layout: str = Field(
        default="domain/class", description="levels of folders: domain, class and split, class at least"
    )

    @field_validator("layout")
    @classmethod
    def _readable(cls, layout: str) -> str:
        levels = layout.split("/")
        if "class" not in levels or len(set(levels)) != len(levels) or not set(levels) <= set(_LEVELS):
            raise ValueError(expected("layout", "of domain, class and split, as in domain/class", layout, "Mend it."))
        return layout


def split_named(word: str) -> str:
    """'val' for 'val', 'valid', 'validation', ...; an unknown word is an error."""
    if word.lower() not in SPLIT_WORDS:
        raise DataError(f"Expected the name of a split, but got '{word}'. {nearest(word.lower(), SPLIT_WORDS)}")
    return SPLIT_WORDS[word.lower()]


def build(out: Path, source: Path, config: FolderConfig, *, name: str = "", progress: Progress = SILENT) -> Manifest:
    """The images below `source`; their splits are given by folders, or drawn so that no rare class vanishes."""
    root = find_root(source, (), (), WHERE)
    levels = config.layout.split("/")
    if "split" in levels:
        config.refuse_drawing("folders give the splits")
    key = {"builder": "folder", "version": 1, "config": config.model_dump(mode="json")}

    def plan(without: Collection[str]) -> Plan:
        rows = [(dict(zip(levels, folders, strict=True)), path) for folders, path in _walk(root, len(levels))]
        if not rows:
            rule = f"a folder with images in {config.layout.replace('/', ' folders, in them ')} folders"
            got = "; ".join(["no image at that depth", *_passed_over(root, config.layout)])
            raise DataError(expected(f"--source '{source}'", rule, got, WHERE))
        made = make_plan(
            name or root.resolve().name,
            [path for _, path in rows],
            [found["class"] for found, _ in rows],
            [found.get("domain", ONE_DOMAIN) for found, _ in rows],
            [split_named(found["split"]) for found, _ in rows] if "split" in levels else None,
            config,
            without,
        )
        made.notes = _passed_over(root, config.layout)
        return made

    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress)


def _walk(folder: Path, depth: int, inside: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """(folder names, path) of each image exactly `depth` folders down, sorted."""
    if len(inside) == depth:
        yield from ((inside, "/".join((*inside, name))) for name in images_in(folder))
        return
    for name in folders_in(folder):
        yield from _walk(folder / name, depth, (*inside, name))


def _passed_over(root: Path, layout: str) -> list[str]:
    """A sentence on the images that lie less or more folders down than the layout says; none where all are read."""
    depth = layout.count("/") + 1
    others = []
    for place, folders, _ in os.walk(root, followlinks=True):  # linked folders are read as well
        inside = Path(place).relative_to(root)
        deep = len(inside.parts) > depth + 1  # far enough to see what was meant; a link may lead in a circle
        folders[:] = [] if deep else sorted(name for name in folders if not name.startswith("."))
        if len(inside.parts) != depth:
            others += [(inside / name).as_posix() for name in images_in(Path(place))]
    if not others:
        return []
    number = "1 image was" if len(others) == 1 else f"{len(others)} images were"
    return [f"{number} passed over, not in {layout} folders but elsewhere: {some(others)}"]


def make_plan(
    name: str,
    paths: list[str],
    classes: list[str],
    domains: list[str],
    splits: list[str] | None,
    config: DrawConfig,
    without: Collection[str],
    class_order: tuple[str, ...] | None = None,
) -> Plan:
    """A plan from a class, domain and (unless drawn) split for each path; the draw knows nothing of those `without`.

    A class or domain all of whose images are left out keeps its place, so that it is missed.
    """
    order = class_order or tuple(sorted(set(classes)))
    plan = Plan(name, order, tuple(sorted(set(domains))), WHERE)
    labels = {word: i for i, word in enumerate(order)}
    places = {word: i for i, word in enumerate(plan.domains)}
    kept = [i for i, path in enumerate(paths) if path not in without]
    label_ids = np.array([labels[classes[i]] for i in kept], np.int64)
    domain_ids = np.array([places[domains[i]] for i in kept], np.int64)
    if splits is None:
        drawn = draw_splits(label_ids, domain_ids, val=config.val, test=config.test, seed=config.seed)
        chosen = [SPLITS[i] for i in drawn]
    else:
        chosen = [splits[i] for i in kept]
    for i, label, domain, split in zip(kept, label_ids.tolist(), domain_ids.tolist(), chosen, strict=True):
        plan.add(paths[i], label, domain, split)
    return plan
