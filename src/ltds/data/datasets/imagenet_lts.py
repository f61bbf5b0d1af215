"""ImageNet-LTS (Gu et al., supplement A.1): the official lists of ImageNet-LT, each image in one of five styles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.text import few_quoted, text_lines
from ltds.data.build.dataset import build_dataset
from ltds.data.build.plan import Plan, variant
from ltds.data.build.source import digests, find_root, read_list
from ltds.data.datasets.lts import VERSION, StyleConfig, draw_domains, start_plan
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

WHERE = (
    "Download ILSVRC2012 from https://image-net.org (free account required) and unpack it to train/<wnid>/*.JPEG "
    "and val/ (flat, or sorted into <wnid>/)."
)
WHERE_LISTS = (
    "Download ImageNet_LT_train.txt, ImageNet_LT_val.txt and ImageNet_LT_test.txt from "
    "https://github.com/zhmiao/OpenLongTailRecognition-OLTR (its README links them)."
)
LICENCE = "ImageNet: non-commercial research and education only"
OFFICIAL = (115_846, 20_000, 50_000)  # images in the train, val and test lists
CLASSES = 1000
LISTS = {split: f"ImageNet_LT_{split}.txt" for split in ("train", "val", "test")}


class ImagenetLtsConfig(StyleConfig):
    """The lists give the counts (115,846 for training, 1280 to 5 a class); only the styles are drawn."""


def build(
    out: Path,
    source: Path,
    config: ImagenetLtsConfig,
    *,
    lists: Path,
    class_names: Path | None = None,
    progress: Progress = SILENT,
) -> Manifest:
    """ImageNet-LTS; class names are WordNet ids (wnid), or names from a file of `wnid name` lines."""
    root = find_root(source, ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC", "ILSVRC2012"), ("train", "val"), WHERE)
    files = [lists / name for name in LISTS.values()]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        got = f"no {few_quoted(missing)}"
        raise DataError(expected(f"argument 'lists' ('{lists}')", "a folder of ImageNet-LT's lists", got, WHERE_LISTS))
    key = {
        "builder": "imagenet-lts",
        "version": VERSION,
        "config": config.model_dump(mode="json"),
        "lists": digests([*files, *([class_names] if class_names else [])]),
    }
    return build_dataset(
        out,
        root,
        key,
        lambda _: plan(lists, config, class_names, locate_images(root)),
        damaged=config.damaged,
        progress=progress,
    )


def locate_images(root: Path) -> Callable[[str], str]:
    """A function from a list's path to the path in `root`: the same, or without the wnid if val/ is not sorted."""
    if next((root / "val").glob("*.JPEG"), None) is None:
        return lambda path: path
    return lambda path: f"val/{path.rpartition('/')[2]}" if path.startswith("val/") else path


def plan(
    lists: Path,
    config: ImagenetLtsConfig,
    class_names: Path | None = None,
    locate: Callable[[str], str] = lambda path: path,
) -> Plan:
    """The rows of the lists, in their order. Each list is read twice, line by line: to count, then to get the names.

    The i-th image of a class gets the i-th style that was drawn for the class, so that no list is held in memory.
    """
    wnids: dict[int, str] = {}
    counts = {split: _count(lists / name, wnids) for split, name in LISTS.items()}
    classes = len(wnids)
    if sorted(wnids) != list(range(classes)) or len(set(wnids.values())) != classes:
        got = f"{classes} labels up to {max(wnids, default=0)}"
        raise DataError(expected(f"the labels in '{lists}'", "0..C-1, each with a different wnid", got, WHERE_LISTS))
    sizes = {split: _sizes(count, classes) for split, count in counts.items()}
    styled = draw_domains(sizes, config)
    result = start_plan("imagenet-lts", _classes(wnids, class_names), config, WHERE)
    result.licence = LICENCE
    _name(result, [sum(count.values()) for count in counts.values()], config)
    for split, name in LISTS.items():
        used = [0] * classes
        domains = styled[split]
        for path, label in read_list(lists / name, WHERE_LISTS):
            domain = int(domains[label][used[label]])
            used[label] += 1
            if domain >= 0:
                result.add(locate(path), label, domain, split)
    _require_once(result, lists)
    return result


def _name(plan: Plan, sizes: list[int], config: ImagenetLtsConfig) -> None:
    """Other lists or settings get a different name: they cannot be compared with the paper's numbers."""
    if (*sizes, len(plan.classes)) != (*OFFICIAL, CLASSES):
        plan.name += f"-{'-'.join(map(str, sizes))}"
        given, official = (" / ".join(f"{n:,}" for n in numbers) for numbers in (sizes, OFFICIAL))
        plan.notes.append(
            f"these are not the official lists, so the name differs: they have {given} images of "
            f"{len(plan.classes):,} classes, the official ones {official} of {CLASSES:,}"
        )
    plan.name = variant(plan.name, config)


def _require_once(plan: Plan, lists: Path) -> None:
    """Refuse an original image that is listed twice: in two styles it would be two files, perhaps in train and test."""
    seen: set[int] = set()  # hashes take less memory than names
    suspects: dict[str, list[str]] = {}
    for row in range(len(plan.paths)):
        digest = hash(plan.image(row))
        if digest in seen:
            suspects[plan.image(row)] = []
        seen.add(digest)
    for row, split in enumerate(plan.split_ids if suspects else ()):
        if plan.image(row) in suspects:
            suspects[plan.image(row)].append(SPLITS[split])
    twice = [f"{image} ({' and '.join(splits)})" for image, splits in suspects.items() if len(splits) > 1]
    if twice:
        got = f"{len(twice)} more than once: {few_quoted(twice)}"
        remedy = f"Remove them from one list. {WHERE_LISTS}"
        raise DataError(expected(f"the images in '{lists}'", "each in one line of one list", got, remedy))


def _count(file: Path, wnids: dict[int, str]) -> Counter[int]:
    """Images of each label; also notes the wnid of each label, the second folder of a path, which must not change."""
    count: Counter[int] = Counter()
    for path, label in read_list(file, WHERE_LISTS):
        wnid = path.split("/")[-2] if path.count("/") > 1 else ""
        if not wnid or wnids.setdefault(label, wnid) != wnid:
            rule, got = "a path train|val/<wnid>/<name> of one wnid", f"'{path}' after '{wnids.get(label, '')}'"
            raise DataError(expected(f"label {label} in '{file}'", rule, got, WHERE_LISTS))
        count[label] += 1
    return count


def _sizes(count: Counter[int], classes: int) -> NDArray[np.int64]:
    return np.array([count[label] for label in range(classes)], np.int64)


def _classes(wnids: dict[int, str], class_names: Path | None) -> list[str]:
    """The name of each label; if two classes have the same name, the wnid is added to both."""
    ordered = [wnids[label] for label in range(len(wnids))]
    if class_names is None:
        return ordered
    known = {words[0]: words[-1] for words in (line.split(maxsplit=1) for line in text_lines(class_names))}
    missing = [wnid for wnid in ordered if wnid not in known]
    if missing:
        remedy = "Give a file with a line 'wnid name' for each class."
        raise DataError(
            expected(f"'{class_names}'", "a name for every class", f"none for {few_quoted(missing)}", remedy)
        )
    times = Counter(known[wnid] for wnid in ordered)
    return [known[wnid] if times[known[wnid]] == 1 else f"{known[wnid]} ({wnid})" for wnid in ordered]
