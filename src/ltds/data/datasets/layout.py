"""What the folders of somebody's images mean, read off their names and depth; or an error that suggests a layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ltds.core.errors import DataError
from ltds.core.text import few_quoted
from ltds.data.datasets.folder import SPLIT_WORDS
from ltds.data.image_files import SUFFIXES

SUGGESTED = "Sort them into folders by domain and class, as in {name}/hospital-a/benign/001.jpg."


def infer_layout(root: Path, images: Sequence[str]) -> str:
    """The layout of the folder `root` for the dataset builder; `images` are the paths of its images, relative to it.

    domain/class, class (one domain), or either with folders for the splits, at any level: split/class,
    domain/split/class, domain/class/split, ...
    """
    if not images:
        kinds = ", ".join(sorted(SUFFIXES))
        raise DataError(
            f"Expected '{root}' to hold images ({kinds}) in folders domain/class, but got none. "
            + SUGGESTED.format(name=root.name or root)
        )
    depth = Counter(path.count("/") for path in images).most_common(1)[0][0]
    if depth == 0:
        raise DataError(
            f"Expected '{root}' to hold images in folders domain/class, but got {len(images)} images without a class: "
            f"they lie directly in the folder. {SUGGESTED.format(name=root.name or root)}"
        )
    levels = [path.split("/")[:-1] for path in images if path.count("/") >= depth]
    names_at = [{folders[i] for folders in levels} for i in range(min(depth, 3))]
    split_at = next((i for i, found in enumerate(names_at) if _are_splits(found)), None)
    if split_at is None:
        for found in names_at:
            _refuse_splits_among_others(root, found)
        _refuse_one_level_too_deep(root, levels, depth)
        _refuse_deeper_splits(root, levels, len(names_at))
    names = ["domain", "class"] if depth - (split_at is not None) >= 2 else ["class"]
    if split_at is not None:
        names.insert(min(split_at, len(names)), "split")
    return "/".join(names)


def _are_splits(names: set[str]) -> bool:
    """Whether these folders are splits: train and test, say, and nothing else."""
    return len(names) >= 2 and all(name.lower() in SPLIT_WORDS for name in names)


def _splits_among(names: set[str]) -> list[str]:
    """The folders that are probably splits: train and another one. One name alone says nothing: trains are vehicles."""
    splits = sorted(name for name in names if name.lower() in SPLIT_WORDS)
    kinds = {SPLIT_WORDS[name.lower()] for name in splits}
    return splits if "train" in kinds and len(kinds) > 1 else []


def _refuse_splits_among_others(root: Path, names: set[str]) -> None:
    """Raise where folders are called train and test, say, next to others: as domains, the test would be trained on."""
    splits = _splits_among(names)
    others = sorted(names - set(splits))
    if not others or not splits:
        return
    raise DataError(
        f"Expected the folders of one level in '{root}' to be splits or none of them, but got {few_quoted(splits)} "
        f"next to {few_quoted(others)}. If they are splits, move the others away, or rename them to train, val or "
        "test. If they are not, build the dataset with the builder 'folder' and name its setting 'layout', such as "
        "domain/class."
    )


def _refuse_deeper_splits(root: Path, levels: list[list[str]], depth: int) -> None:
    """Raise where folders below the classes are splits: test images would be drawn for training."""
    splits = _splits_among({name for folders in levels for name in folders[depth:]})
    if not splits:
        return
    example = next("/".join(folders) for folders in levels if set(folders[depth:]) & set(splits))
    raise DataError(
        f"Expected the folders of splits in '{root}' to be directly in every domain or class, or in none, but got "
        f"{few_quoted(splits)} elsewhere, such as '{example}'. If they are splits, sort the other images into such "
        "folders as well, or list all images in a CSV file with the columns path, class, domain and split. If they are "
        "not, rename them."
    )


def _refuse_one_level_too_deep(root: Path, levels: list[list[str]], depth: int) -> None:
    """Raise where a folder lies around the domains: an archive's own folder, or a country around the sites."""
    if depth < 3:
        return
    outer = {folders[0] for folders in levels}
    if len(outer) == 1:
        inner = root / next(iter(outer))
        raise DataError(
            f"Expected '{root}' to hold images in folders domain/class, but got one folder '{inner.name}' around "
            f"everything. Name that one instead: '{inner}'."
        )
    second, third = ({(f[0], f[i]) for f in levels} for i in (1, 2))
    if _shared(second) == 0 and _shared(third) > 0:
        example = "/".join(levels[0][:3])
        raise DataError(
            f"Expected '{root}' to hold images in folders domain/class, but got folders one level deeper: the second "
            f"level has other names in each folder of the first, the third repeats its names ('{example}'). Name one "
            "of the outer folders, or list the images in a CSV file with the columns path, class and domain."
        )


def _shared(pairs: set[tuple[str, str]]) -> int:
    """How many names lie in more than one outer folder."""
    return sum(times > 1 for times in Counter(name for _, name in pairs).values())
