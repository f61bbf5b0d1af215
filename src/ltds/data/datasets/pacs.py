"""PACS: four domains, seven classes, the official lists; as it is, or long-tailed with a chosen ratio."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import numpy_generator
from ltds.core.text import few_quoted
from ltds.data.build.dataset import build_dataset
from ltds.data.build.longtail import largest_tail
from ltds.data.build.plan import BuildConfig, Plan
from ltds.data.build.source import digests, find_root, read_list
from ltds.data.manifest import Manifest

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
DOMAINS = ("photo", "art_painting", "cartoon", "sketch")
SPLIT_NAMES = {"train": "train", "val": "crossval", "test": "test"}
VERSION = 2
WHERE = (
    "Download PACS from https://dali-dl.github.io/project_iccv2017.html: "
    "a folder for each domain, in it one for each class."
)
WHERE_LISTS = "They come with PACS: <domain>_{train,crossval,test}_kfold.txt ('Train val splits')."
LICENCE = "PACS: research only; no licence is stated"

LabelledPaths = dict[str, int]  # path in the source -> label


@dataclass(frozen=True)
class PacsLists:
    """The official lists: images[domain][split], with labels 0..6."""

    images: Mapping[str, Mapping[str, LabelledPaths]]

    def whole(self, domain: str) -> LabelledPaths:
        """Every image of a domain, which the protocol calls its test list."""
        return dict(self.images[domain]["test"])


class PacsConfig(BuildConfig):
    """PACS as published."""


class PacsLtConfig(BuildConfig):
    """A long tail with the same ratio in every domain."""

    ratio: float = Field(
        default=20.0, ge=1.0, description="training images of the most common class divided by those of the rarest"
    )
    seed: int = Field(default=0, ge=0, description="seed of the choice of training images")


def find_pacs(source: Path) -> Path:
    """The folder with the four domains' folders in it."""
    return find_root(source, ("PACS", "kfold", "pacs"), DOMAINS, WHERE)


def list_paths(splits: Path) -> list[Path]:
    return [splits / f"{domain}_{name}_kfold.txt" for domain in DOMAINS for name in SPLIT_NAMES.values()]


def read_lists(splits: Path) -> PacsLists:
    """The twelve lists, checked: labels agree with folders, and each test list is train and crossval together."""
    missing = [file.name for file in list_paths(splits) if not file.is_file()]
    if missing:
        got = f"no {few_quoted(missing)}"
        raise DataError(expected(f"argument 'splits' ('{splits}')", "a folder of the official lists", got, WHERE_LISTS))
    images = {
        domain: {split: _read(splits / f"{domain}_{name}_kfold.txt", domain) for split, name in SPLIT_NAMES.items()}
        for domain in DOMAINS
    }
    for domain, lists in images.items():
        if lists["train"].keys() & lists["val"].keys() or {**lists["train"], **lists["val"]} != lists["test"]:
            rule = "its train and crossval lists together, which share no image"
            got = f"{len(lists['train'])} + {len(lists['val'])} and {len(lists['test'])} images"
            raise DataError(expected(f"the test list of '{domain}'", rule, got, "Use the official lists."))
    return PacsLists(images)


def _read(file: Path, domain: str) -> LabelledPaths:
    images: LabelledPaths = {}
    for path, label in read_list(file, WHERE_LISTS):
        folders = path.split("/")
        if not 1 <= label <= len(CLASSES) or folders[-3:-1] != [domain, CLASSES[label - 1]]:
            rule = f"{domain}/<class>/<name> with the label 1..7 of its class"
            raise DataError(expected(f"a line of '{file}'", rule, f"'{path} {label}'", "Use the official lists."))
        images["/".join(folders[-3:])] = label - 1
    return images


def start_pacs(name: str, domains: tuple[str, ...], *, repeats: bool) -> Plan:
    return Plan(name, CLASSES, domains, WHERE, LICENCE, test_repeats=repeats)


def add(plan: Plan, images: LabelledPaths, domain: str, split: str) -> None:
    for path, label in images.items():
        plan.add(path, label, plan.domains.index(domain), split)


def plan_pacs(lists: PacsLists) -> Plan:
    """Leave-one-domain-out: train and crossval lists of every domain, and every domain's complete list for test.

    Each domain can therefore be held out and tested on all its images. The test list of a source domain includes its
    training images.
    """
    plan = start_pacs("pacs", DOMAINS, repeats=True)
    for domain in DOMAINS:
        add(plan, lists.images[domain]["train"], domain, "train")
        add(plan, lists.images[domain]["val"], domain, "val")
        add(plan, lists.whole(domain), domain, "test")
    return plan


def plan_pacs_lt(lists: PacsLists, config: PacsLtConfig, without: Collection[str] = ()) -> Plan:
    """Like `plan_pacs`, but the training images of each domain follow `longtail_counts`.

    Classes are ranked by their training images over all domains, so that head and tail are the same in all of them;
    each domain has the largest tail of this ratio that its images allow. Whole numbers reach the ratio only nearly,
    which is noted.
    """
    plan = start_pacs("pacs-lt", DOMAINS, repeats=True)
    sizes = np.zeros((len(DOMAINS), len(CLASSES)), np.int64)
    training = {
        domain: {path: label for path, label in lists.images[domain]["train"].items() if path not in without}
        for domain in DOMAINS
    }
    for d, domain in enumerate(DOMAINS):
        np.add.at(sizes[d], list(training[domain].values()), 1)
    order = np.argsort(-sizes.sum(axis=0), kind="stable")
    _require_reachable(sizes[:, order], config.ratio)
    reached = []
    for d, domain in enumerate(DOMAINS):
        counts = largest_tail(sizes[d, order], config.ratio)
        reached.append(f"{domain} {counts[0] / counts[-1]:.1f} ({counts[0]} to {counts[-1]} images)")
        for label, count in zip(order.tolist(), counts.tolist(), strict=True):
            names = [path for path, path_label in training[domain].items() if path_label == label]
            drawn = numpy_generator(config.seed, "pacs-lt", d, label).permutation(len(names))[:count]
            add(plan, {names[i]: label for i in sorted(drawn)}, domain, "train")
        add(plan, lists.images[domain]["val"], domain, "val")
        add(plan, lists.whole(domain), domain, "test")
    plan.notes.append(f"ratio of {config.ratio:g}, as nearly as whole numbers allow: {', '.join(reached)}")
    return plan


def _require_reachable(sizes: NDArray[np.int64], ratio: float) -> None:
    """Refuse a ratio that some domain cannot reach with one image of the rarest class. sizes: (domains, C), by rank."""
    most = [int(largest_tail(row, math.inf)[0]) for row in sizes]
    if ratio > min(most):
        domain = DOMAINS[most.index(min(most))]
        rule = f"at most {min(most)}, the most that '{domain}' allows"
        raise DataError(expected("the setting 'ratio'", rule, f"{ratio:g}", "Lower it."))


def build(out: Path, source: Path, config: PacsConfig, *, splits: Path, progress: Progress = SILENT) -> Manifest:
    """PACS for leave-one-domain-out; images of any size."""
    root = find_pacs(source)
    key = key_of("pacs", config, splits)
    return build_dataset(
        out, root, key, lambda _: plan_pacs(read_lists(splits)), damaged=config.damaged, progress=progress
    )


def build_long_tailed(
    out: Path, source: Path, config: PacsLtConfig, *, splits: Path, progress: Progress = SILENT
) -> Manifest:
    """PACS for leave-one-domain-out with long-tailed training images."""
    root = find_pacs(source)
    key = key_of("pacs-lt", config, splits)

    def plan(without: Collection[str]) -> Plan:
        return plan_pacs_lt(read_lists(splits), config, without)

    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress)


def key_of(name: str, config: BuildConfig, splits: Path) -> dict[str, object]:
    """All that a PACS dataset depends on."""
    return {
        "builder": name,
        "version": VERSION,
        "config": config.model_dump(mode="json"),
        "lists": digests(list_paths(splits)),
    }
