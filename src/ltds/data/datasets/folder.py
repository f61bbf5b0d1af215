"""A dataset from images that are sorted into folders by domain and class, and perhaps split."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from ltds.core.config import Fraction
from ltds.core.errors import ConfigError, DataError, did_you_mean, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.text import composed, count, few_quoted
from ltds.data.build.dataset import build_dataset
from ltds.data.build.groups import draw_grouped_splits, group_notes
from ltds.data.build.plan import BuildConfig, Plan
from ltds.data.build.source import find_root
from ltds.data.build.stratify import draw_splits
from ltds.data.datasets.ignored import ignored
from ltds.data.image_files import FileId, file_id, folders_in, images_below, images_in, is_whole_dataset
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

WHERE = "Name a folder with images, and say what its folders mean: the setting 'layout', for example domain/class."
SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "crossval": "val",
    "dev": "val",
    "eval": "val",
    "test": "test",
    "testing": "test",
    "holdout": "test",
}
ONE_DOMAIN = "all"
_LEVELS = ("domain", "class", "split")


class DrawConfig(BuildConfig):
    """Which share of the images is drawn for validation and test, separately in each (domain, class) pair."""

    val: Fraction = Field(default=0.1, description="share of validation images in each (domain, class) pair")
    test: Fraction = Field(default=0.2, description="share of test images in each (domain, class) pair")
    most_test: int = Field(
        default=0, ge=0, description="largest number of test images of a pair, for a more even test; 0: no limit"
    )
    seed: int = Field(default=0, ge=0, description="seed of the drawn splits")
    whole_held_out: bool | None = Field(
        default=None,
        description="test a held-out domain on all of its images; by default where the splits are drawn",
    )

    @model_validator(mode="after")
    def _leaves_some(self) -> DrawConfig:
        if self.val + self.test >= 1:
            got = f"{self.val} + {self.test}"
            raise ValueError(
                expected("val and test", "less than 1 together", got, "Lower them: the rest is for training.")
            )
        return self

    def refuse_drawing(self, why: str) -> None:
        """Raise if a setting of the random splits was given although the splits are given."""
        unused = sorted(self.model_fields_set & {"val", "test", "most_test", "seed"})
        if unused:
            got = ", ".join(unused)
            raise ConfigError(f"Expected no settings for random splits, because {why}, but got {got}. Leave them out.")


class FolderConfig(DrawConfig):
    """What the folders below the source mean, from the outermost to the innermost."""

    layout: str = Field(
        default="domain/class", description="what the levels of folders are: class, perhaps domain and split"
    )
    deep: bool = Field(default=False, description="also read images in folders below those of the layout")
    group: str = Field(
        default="",
        description="regular expression that is searched in the path of each image (a/b/c.jpg); images with the same "
        "match belong together and are drawn for the same split",
    )

    @field_validator("layout")
    @classmethod
    def _readable(cls, layout: str) -> str:
        levels = layout.split("/")
        if "class" not in levels or len(set(levels)) != len(levels) or not set(levels) <= set(_LEVELS):
            raise ValueError(
                expected("layout", "made of domain, class and split, like domain/class", layout, "Correct it.")
            )
        return layout

    @field_validator("group")
    @classmethod
    def _compiles(cls, group: str) -> str:
        try:
            re.compile(group)
        except re.error as error:
            raise ValueError(
                expected("group", "a regular expression", f"'{group}' ({error})", "Correct it.")
            ) from error
        return group

    def to_key(self) -> dict[str, Any]:
        """The settings as a dataset records them; datasets from before there were groups have none."""
        return self.model_dump(mode="json", exclude=None if self.group else {"group"})


def split_named(word: str) -> str:
    """'val' for 'val', 'valid', 'validation', ...; an unknown word is an error."""
    if word.lower() not in SPLIT_WORDS:
        raise DataError(f"Expected the name of a split, but got '{word}'. {did_you_mean(word.lower(), SPLIT_WORDS)}")
    return SPLIT_WORDS[word.lower()]


def build(out: Path, source: Path, config: FolderConfig, *, name: str = "", progress: Progress = SILENT) -> Manifest:
    """The images below `source`; folders give their splits, or they are drawn so that rare classes are in each."""
    return build_found(out, source, config, None, name=name, progress=progress)


def build_found(
    out: Path,
    source: Path,
    config: FolderConfig,
    images: Sequence[str] | None,
    *,
    name: str = "",
    progress: Progress = SILENT,
) -> Manifest:
    """As `build`, from the images that somebody has found already, see `plan_folder`."""
    root = find_root(source, (), (), WHERE)
    levels = config.layout.split("/")
    if "split" in levels:
        config.refuse_drawing("the folders give the splits")
    key = {"builder": "folder", "version": 1, "config": config.to_key()}

    def plan(without: Collection[str]) -> Plan:
        return plan_folder(name or root.resolve().name, root, config, without, images)

    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress)


def plan_folder(
    name: str,
    root: Path,
    config: FolderConfig,
    without: Collection[str] = (),
    images: Sequence[str] | None = None,
) -> Plan:
    """The plan of the images below `root`, without some of them. Reads names only, no image.

    `images`: those that are deep enough for the layout, folder by folder, where somebody has looked already.
    """
    levels = config.layout.split("/")
    paths = list(_walk(root, len(levels), config.deep) if images is None else images)
    if not paths:
        rule = f"a folder with images in folders {config.layout}"
        got = "; ".join(["no image at that depth", *ignored(root, config.layout, deep=config.deep)])
        raise DataError(expected(f"argument 'source' ('{root}')", rule, got, WHERE))
    plan = make_plan(
        name,
        paths,
        *names_by_folder(paths, config.layout),
        [split_named(path.split("/")[levels.index("split")]) for path in paths] if "split" in levels else None,
        config,
        without,
        groups=groups_by_path(paths, config.group) if config.group else None,
    )
    plan.notes += ignored(root, config.layout, deep=config.deep)
    return plan


def names_by_folder(paths: Sequence[str], layout: str) -> tuple[list[str], list[str]]:
    """The class and the domain of each image, from the folders in its path."""
    levels = layout.split("/")
    folders = [dict(zip(levels, path.split("/"), strict=False)) for path in paths]  # the file's name has no level
    classes = [composed(names["class"]) for names in folders]
    return classes, [composed(names.get("domain", ONE_DOMAIN)) for names in folders]


def groups_by_path(paths: Sequence[str], pattern: str) -> list[str]:
    """What the regular expression matches in each path, or its groups if it has any; "" without a match."""
    found = [re.search(pattern, path) for path in paths]
    if not any(found):
        got = f"no match in paths like '{paths[0]}'"
        raise DataError(expected(f"the setting 'group' ('{pattern}')", "found in the paths", got, "Correct it."))
    return ["" if match is None else "/".join(filter(None, match.groups())) or match.group() for match in found]


def _walk(
    folder: Path, depth: int, deep: bool, inside: tuple[str, ...] = (), above: frozenset[FileId] = frozenset()
) -> Iterator[str]:
    """The path of each image `depth` folders down, or `deep` at least as many, sorted; none of datasets."""
    if len(inside) == depth:
        names = images_below(folder, above, without_datasets=True) if deep else images_in(folder)
        yield from ("/".join((*inside, name)) for name in names)
        return
    for name in folders_in(folder):
        if is_whole_dataset(folder / name):
            continue
        yield from _walk(folder / name, depth, deep, (*inside, name), above | {file_id(folder)})


def make_plan(
    name: str,
    paths: list[str],
    classes: list[str],
    domains: list[str],
    splits: list[str] | None,
    config: DrawConfig,
    without: Collection[str],
    class_order: tuple[str, ...] | None = None,
    where: str = WHERE,
    groups: Sequence[str] | None = None,
) -> Plan:
    """A plan from the class, domain and split of each path; without `splits` these are drawn.

    `without` are damaged images, which are left out; so is a class or domain that has no others, with a note. `where`:
    what to do if images are missing. `groups`: which images belong together ("": with no other), so that a draw keeps
    them in one split.
    """
    kept = [i for i, path in enumerate(paths) if path not in without]
    if not kept:
        remedy = "Copy them again from their source."
        raise DataError(expected(f"the images of {name}", "readable", f"{len(paths)} that cannot be decoded", remedy))
    lost_classes, lost_domains = (set(names) - {names[i] for i in kept} for names in (classes, domains))
    order = tuple(word for word in class_order or sorted(set(classes)) if word not in lost_classes)
    plan = Plan(name, order, tuple(sorted(set(domains) - lost_domains)), where)
    plan.notes += [*_lost("class", "classes", lost_classes), *_lost("domain", "domains", lost_domains)]
    plan.whole_held_out = splits is None if config.whole_held_out is None else config.whole_held_out
    labels = {word: i for i, word in enumerate(order)}
    domain_index = {word: i for i, word in enumerate(plan.domains)}
    label_ids = np.array([labels[classes[i]] for i in kept], np.int64)
    domain_ids = np.array([domain_index[domains[i]] for i in kept], np.int64)
    classes_kept, domains_kept = ([column[i] for i in kept] for column in (classes, domains))
    together = None if groups is None else [groups[i] for i in kept]
    chosen = _drawn(classes_kept, domains_kept, together, config) if splits is None else [splits[i] for i in kept]
    if together is not None:
        pairs = list(zip(domains_kept, classes_kept, strict=True))
        plan.notes += group_notes(pairs, together, chosen, drawn=splits is None, tested=config.test > 0)
    for i, label, domain, split in zip(kept, label_ids.tolist(), domain_ids.tolist(), chosen, strict=True):
        plan.add(paths[i], label, domain, split)
    return plan


def _drawn(
    classes: Sequence[str], domains: Sequence[str], groups: Sequence[str] | None, config: DrawConfig
) -> list[str]:
    """The split of each image, drawn; raises if the groups leave nothing for validation and test."""
    val, test, seed, most = config.val, config.test, config.seed, config.most_test
    if groups is None:
        drawn = draw_splits(classes, domains, val=val, test=test, seed=seed, most_test=most)
    else:
        drawn = draw_grouped_splits(classes, domains, groups, val=val, test=test, seed=seed, most_test=most)
        if not drawn.any() and draw_splits(classes, domains, val=val, test=test, seed=seed).any():
            got = (
                f"none that can leave training, such as '{next(filter(None, groups), '')}': a class in a domain has one"
            )
            remedy = "Name what images belong to, such as a patient. For no groups, rename a list's column 'group'."
            raise DataError(expected("the images' groups", "several for a class in a domain", got, remedy))
    return [SPLITS[i] for i in drawn]


def _lost(one: str, several: str, names: Collection[str]) -> Iterator[str]:
    """A sentence about classes or domains that were left out, if there are any."""
    if names:
        was = count(len(names), f"{one} was", f"{several} were")
        yield f"{was} left out because none of the images can be decoded: {few_quoted(sorted(names))}"
