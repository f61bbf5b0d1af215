"""A folder of images sorted into folders by domain and class (and split) as a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import Field, field_validator, model_validator

from ltds.core.config import Fraction
from ltds.core.errors import ConfigError, DataError, expected, nearest
from ltds.core.progress import SILENT, Progress
from ltds.data.builders.dataset import build_dataset
from ltds.data.builders.plan import BuildConfig, Plan
from ltds.data.builders.source import find_root, folders_in, images_in
from ltds.data.manifest import SPLITS, Manifest
from ltds.data.stratify import draw_splits

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
    seed: int = Field(default=0, ge=0)

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

    def plan() -> Plan:
        rows = [(dict(zip(levels, folders, strict=True)), path) for folders, path in _walk(root, len(levels))]
        if not rows:
            rule = f"a folder with images in {config.layout.replace('/', ' folders, in them ')} folders"
            raise DataError(expected(f"--source '{source}'", rule, "no image at that depth", WHERE))
        return make_plan(
            name or root.resolve().name,
            [path for _, path in rows],
            [found["class"] for found, _ in rows],
            [found.get("domain", ONE_DOMAIN) for found, _ in rows],
            [split_named(found["split"]) for found, _ in rows] if "split" in levels else None,
            config,
        )

    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress)


def _walk(folder: Path, depth: int, inside: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """(folder names, path) of each image exactly `depth` folders down, sorted."""
    if len(inside) == depth:
        yield from ((inside, "/".join((*inside, name))) for name in images_in(folder))
        return
    for name in folders_in(folder):
        yield from _walk(folder / name, depth, (*inside, name))


def make_plan(
    name: str,
    paths: list[str],
    classes: list[str],
    domains: list[str],
    splits: list[str] | None,
    config: DrawConfig,
    class_order: tuple[str, ...] | None = None,
) -> Plan:
    """A plan from a class, domain and (unless drawn) split for each path."""
    order = class_order or tuple(sorted(set(classes)))
    plan = Plan(name, order, tuple(sorted(set(domains))), WHERE)
    labels = {word: i for i, word in enumerate(order)}
    places = {word: i for i, word in enumerate(plan.domains)}
    label_ids = np.array([labels[word] for word in classes], np.int64)
    domain_ids = np.array([places[word] for word in domains], np.int64)
    if splits is None:
        drawn = draw_splits(label_ids, domain_ids, val=config.val, test=config.test, seed=config.seed)
        splits = [SPLITS[i] for i in drawn]
    for path, label, domain, split in zip(paths, label_ids.tolist(), domain_ids.tolist(), splits, strict=True):
        plan.add(path, label, domain, split)
    return plan
