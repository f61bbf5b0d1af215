"""The authors' list files of an LTS dataset: `<Domain>_<split>.txt`, lines `path label`, checked and used unchanged.

Their paths are `original/antelope/antelope_10001.jpg` and `hayao/antelope/antelope_10001_hayao.jpg`: the style is the
first folder and the end of the name. Only the class folder and the name are used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.text import few_quoted
from ltds.data.build.plan import Plan
from ltds.data.build.source import read_list
from ltds.data.splits import SPLITS

WHERE = "Take the authors' files: https://github.com/guxiao0822/LT-DS, dataset/README.md, 'Train/Val/Test Splits'."


def list_files(folder: Path, domains: Sequence[str]) -> list[Path]:
    """The list file of each domain and split, in the folder or in its `image_list`."""
    inner = folder / "image_list"
    home = inner if inner.is_dir() else folder
    files = [home / f"{domain}_{split}.txt" for split in SPLITS for domain in domains]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        rule = f"a folder with {len(files)} list files"
        raise DataError(
            expected(f"argument 'lists' ('{folder}')", rule, f"no {few_quoted(missing)} in '{home}'", WHERE)
        )
    return files


def plan_published(plan: Plan, files: Sequence[Sequence[str]], folder: Path) -> Plan:
    """The plan with the rows of the lists. files: the images of each class in the source, as `class/name`."""
    known = {_stem(image): image for names in files for image in names}
    labels: dict[int, str] = {}
    rows: list[tuple[str, int, int, str]] = []
    unknown: list[str] = []
    lists = list_files(folder, plan.domains)
    pairs = [(split, domain) for split in SPLITS for domain in range(len(plan.domains))]
    for file, (split, domain) in zip(lists, pairs, strict=True):
        for path, label in read_list(file, WHERE):
            image = known.get(_original(path, plan.domains[domain]))
            if image is None:
                unknown.append(path)
                continue
            name = image.partition("/")[0]
            if labels.setdefault(label, name) != name:
                got, rule = f"'{labels[label]}' and '{name}'", "of one class"
                raise DataError(expected(f"the images with label {label} in '{file.parent}'", rule, got, WHERE))
            rows.append((image, label, domain, split))
    if unknown:
        got = f"{len(unknown)} that are not: {few_quoted(unknown)}"
        raise DataError(expected(f"the images named in '{folder}'", "in the source", got, plan.where))
    plan.classes = _classes(labels, plan.classes, folder)
    for row in rows:
        plan.add(*row)
    plan.facts |= _facts(rows)
    return plan


def _stem(image: str) -> str:
    return image.rpartition(".")[0]


def _original(path: str, domain: str) -> str:
    """'antelope/antelope_10001' for 'hayao/antelope/antelope_10001_hayao.jpg'."""
    return "/".join(_stem(path).split("/")[-2:]).removesuffix(f"_{domain.lower()}")


def _classes(labels: dict[int, str], known: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The class names in the order of the lists' labels, which must be 0..C-1, one for each class."""
    ordered = [labels.get(i) for i in range(len(known))]
    if len(labels) != len(known) or None in ordered or set(ordered) != set(known):
        got = f"{len(labels)} labels for {len(set(labels.values()))} classes"
        rule = f"labels 0..{len(known) - 1}, one for each class of the source"
        raise DataError(expected(f"the labels in '{folder}'", rule, got, WHERE))
    return tuple(name for name in ordered if name is not None)


def _facts(rows: Sequence[tuple[str, int, int, str]]) -> dict[str, int]:
    """How often the lists do what the paper rules out: they are used anyway, and this is recorded."""
    trained = {(domain, label) for _, label, domain, split in rows if split == "train"}
    splits: dict[str, set[str]] = {}
    for image, _, _, split in rows:
        splits.setdefault(image, set()).add(split)
    return {
        "originals_in_several_splits": sum(len(names) > 1 for names in splits.values()),
        "validation_images_of_unseen_pairs": sum(
            split == "val" and (domain, label) not in trained for _, label, domain, split in rows
        ),
    }
