"""LTS: a long-tailed, stylised version of a dataset (Gu et al., supplement A.1): which images, in which style.

Any folder of class folders can be made into one; AWA2-LTS and ImageNet-LTS have other numbers and lists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from ltds.core.errors import DataError, did_you_mean, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import numpy_generator
from ltds.data.build.dataset import build_dataset
from ltds.data.build.longtail import deal, domains_of_classes, longtail_counts, split_over_domains
from ltds.data.build.plan import BuildConfig, Plan, style_folder
from ltds.data.build.source import find_root
from ltds.data.image_files import folders_in, images_in
from ltds.data.manifest import Manifest

VERSION = 2  # raise it when the same seed gives another dataset
ORIGINAL = "Original"
WHERE = "Name a folder with one folder of images for each class."


class StyleConfig(BuildConfig):
    """The styles, and how many of them a class has."""

    styles: tuple[str, ...] = Field(
        default=("hayao", "shinkai", "vangogh", "ukiyoe"),
        min_length=1,
        description="styles in addition to the original images, as 'ltds data stylize' calls them",
    )
    head: float = Field(default=0.2, ge=0.0, le=1.0, description="share of classes that have images in every domain")
    fewest: int = Field(default=2, ge=1, description="number of domains of the rarest classes")
    exclusive: int = Field(default=1, ge=0, description="for each domain: number of classes that no other domain has")
    seed: int = Field(default=0, ge=0, description="seed of every random choice")

    @field_validator("styles")
    @classmethod
    def _known(cls, styles: tuple[str, ...]) -> tuple[str, ...]:
        from ltds.data.styles import STYLES  # imports torch, which the default styles do not need

        for style in styles:
            if style not in STYLES:
                raise ValueError(expected("styles", "known", f"'{style}'", did_you_mean(style, STYLES)))
        return styles

    @model_validator(mode="after")
    def _distinct(self) -> StyleConfig:
        folders = [style_folder(style) for style in self.styles]
        if len({*folders, ORIGINAL.lower(), ""}) < len(folders) + 2:
            got = ", ".join(self.styles)
            raise ValueError(expected("styles", f"different, and none '{ORIGINAL.lower()}'", got, "Remove one."))
        if self.fewest > len(self.styles) + 1:
            raise ValueError(expected("fewest", "at most the number of domains", self.fewest, "Lower it."))
        return self

    @property
    def domains(self) -> tuple[str, ...]:
        return (ORIGINAL, *(style_folder(style).capitalize() for style in self.styles))


class LtsConfig(StyleConfig):
    """How many images of each class; n_max and n_min are derived from the largest and smallest class unless given."""

    n_max: int | None = Field(
        default=None, ge=1, description="training images of the most common class; default: as many as it has"
    )
    n_min: int | None = Field(
        default=None, ge=1, description="training images of the rarest class; default: as many as it has"
    )
    val_per_class: int = Field(
        default=30, ge=0, description="validation images of a class, before pairs without training images are removed"
    )
    test_per_class: int = Field(default=50, ge=1, description="test images of a class, over all domains")


def draw_domains(counts: Mapping[str, NDArray[np.int64]], config: StyleConfig) -> dict[str, list[NDArray[np.int64]]]:
    """The domain of the i-th image of each class in each split; -1 for validation images that are removed.

    counts: (C,) images of each class in "train", "val" and "test".

    Training: drawn from the domains of the class, of which rarer classes have fewer (`domains_of_classes`, by rank).
    Validation: spread over all domains; (domain, class) pairs without training images are removed. Test: spread over
    all domains.
    """
    train = counts["train"]
    number = len(config.domains)
    allowed = domains_of_classes(
        len(train),
        number,
        numpy_generator(config.seed, "lts/domains"),
        head=config.head,
        fewest=config.fewest,
        exclusive=config.exclusive,
    )
    styled: dict[str, list[NDArray[np.int64]]] = {split: [] for split in ("train", "val", "test")}
    for label, rank in enumerate(frequency_ranks(train)):
        rng = {split: numpy_generator(config.seed, f"lts/{split}", label) for split in styled}
        share = split_over_domains(int(train[label]), allowed[:, rank], rng["train"])
        styled["train"].append(rng["train"].permutation(np.repeat(np.arange(number), share)))
        val = deal(int(counts["val"][label]), number, rng["val"])
        styled["val"].append(np.where(share[val] > 0, val, -1))
        styled["test"].append(deal(int(counts["test"][label]), number, rng["test"]))
    return styled


def frequency_ranks(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(C,) the rank of each class from head (0) to tail; classes of equal size keep their order."""
    ranks = np.empty(len(sizes), dtype=np.int64)
    ranks[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return ranks


def start_plan(name: str, classes: Sequence[str], config: StyleConfig, where: str) -> Plan:
    """A plan without rows yet, whose domains are the original images and the styles."""
    return Plan(name, tuple(classes), config.domains, where, styles=("", *config.styles))


def plan_class_folders(
    plan: Plan, files: Sequence[Sequence[str]], config: LtsConfig, without: Collection[str] = ()
) -> Plan:
    """The plan with its rows. files: the images of each class, in an order that is the same on every machine.

    Each class's images are shuffled, without those in `without`; the first are for test, the next for validation, then
    training images by the long-tailed counts, for classes sorted by size.
    """
    drawn = [
        [name for name in _shuffled(names, config.seed, label) if name not in without]
        for label, names in enumerate(files)
    ]
    sizes, whole = (np.array([len(names) for names in names_by_class], np.int64) for names_by_class in (files, drawn))
    counts = _counts(plan.classes, sizes, whole, config)
    styled = draw_domains(counts, config)
    starts = {"train": counts["test"] + counts["val"], "val": counts["test"], "test": np.zeros_like(sizes)}
    for split, start in starts.items():
        for label, (first, domains) in enumerate(zip(start.tolist(), styled[split], strict=True)):
            for image, domain in zip(drawn[label][first : first + len(domains)], domains, strict=True):
                if domain >= 0:
                    plan.add(image, label, int(domain), split)
    return plan


def _shuffled(names: Sequence[str], seed: int, label: int) -> list[str]:
    return [names[i] for i in numpy_generator(seed, "lts/images", label).permutation(len(names)).tolist()]


def _counts(
    classes: Sequence[str], sizes: NDArray[np.int64], whole: NDArray[np.int64], config: LtsConfig
) -> dict[str, NDArray[np.int64]]:
    """(C,) images of each class in each split, from `sizes` (C,) images of which `whole` (C,) are not left out.

    If a class has too few because of images left out, it has fewer test images: training images come first.
    """
    aside = config.val_per_class + config.test_per_class
    left = whole - aside
    n_max = config.n_max if config.n_max is not None else max(1, int(left.max()))
    n_min = config.n_min if config.n_min is not None else max(1, min(n_max, int(left.min())))
    train = longtail_counts(len(classes), n_max, n_min)[frequency_ranks(whole)]
    for_test = whole - train - config.val_per_class
    short = [f"'{classes[c]}' ({whole[c]})" for c in np.flatnonzero((sizes - aside < train) | (for_test < 1)).tolist()]
    if short:
        rule = f"{aside} images for validation and test, and its training images on the curve {n_max} ... {n_min}"
        remedy = "Lower the settings test_per_class, val_per_class, n_max or n_min, or add images."
        raise DataError(f"Expected every class to have {rule}, but got too few for {', '.join(short[:5])}. {remedy}")
    val = np.full_like(train, config.val_per_class)
    return {"train": train, "val": val, "test": np.minimum(for_test, config.test_per_class)}


def build(out: Path, source: Path, config: LtsConfig, *, name: str = "lts", progress: Progress = SILENT) -> Manifest:
    """The long-tailed, stylised version of the class folders in `source`, whose sorted names are the classes."""
    root = find_root(source, (), (), WHERE)

    def plan(without: Collection[str]) -> Plan:
        classes = [folder for folder in folders_in(root) if images_in(root / folder)]
        if len(classes) < 2:
            got = f"{len(classes)} folders with images"
            raise DataError(expected(f"argument 'source' ('{source}')", "a folder of class folders", got, WHERE))
        files = [[f"{folder}/{name}" for name in images_in(root / folder)] for folder in classes]
        return plan_class_folders(start_plan(name, classes, config, WHERE), files, config, without)

    key = {"builder": "lts", "version": VERSION, "config": config.model_dump(mode="json")}
    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress)
