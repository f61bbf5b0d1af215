"""What a folder of images holds that its dataset will not: sentences, so that nothing vanishes without a word."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ltds.core.text import count, few_quoted
from ltds.data.image_files import datasets_below, files_below, folders_in, images_in, is_image_name, is_whole_dataset

_SHOWN = 5
_EXPECTED = frozenset(  # files that often lie among images and never are one
    {
        *(".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".log"),
        *(".html", ".pdf", ".xls", ".xlsx", ".ods", ".doc", ".docx", ".py", ".sh", ".db", ".ini"),
    }
)
_EXPECTED_NAMES = frozenset({"readme", "license", "licence", "copying", "makefile"})


def ignored(root: Path, layout: str, *, deep: bool) -> list[str]:
    """A sentence each about datasets inside, images at another depth than the layout says, other files, empty folders.

    `deep`: images in folders below those of the layout are used.
    """
    datasets = list(datasets_below(root))
    return [
        *_ignored_datasets(datasets),
        *_ignored_images(root, layout, deep),
        *_ignored_files(root, layout, datasets),
    ]


def _ignored_datasets(datasets: Sequence[str]) -> Iterator[str]:
    if datasets:
        was = "was ignored, with its images" if len(datasets) == 1 else "were ignored, with their images"
        yield f"{count(len(datasets), 'dataset')} inside the folder {was}: {few_quoted(datasets)}"


def _ignored_images(root: Path, layout: str, deep: bool) -> Iterator[str]:
    depth = layout.count("/") + 1
    others = []
    for folder, folders, _ in os.walk(root, followlinks=True):  # linked folders are read as well
        inside = Path(folder).relative_to(root)
        enough = len(inside.parts) > depth + 1  # far enough to see what was meant; links may form a circle
        others_below = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [] if enough else [name for name in others_below if not is_whole_dataset(Path(folder) / name)]
        if len(inside.parts) < depth or (len(inside.parts) > depth and not deep):
            others += [(inside / name).as_posix() for name in images_in(Path(folder))]
    if others:
        number = count(len(others), "image was", "images were")
        yield f"{number} ignored because not in folders {layout}: {few_quoted(others)}"


def _ignored_files(root: Path, layout: str, datasets: Iterable[str]) -> Iterator[str]:
    """How many files are not images, by their suffix; and the folders in which there is no image."""
    others: list[PurePosixPath] = []
    with_files: set[PurePosixPath] = set()
    with_images: set[PurePosixPath] = set()
    for name in files_below(root):
        file = PurePosixPath(name)
        with_files.update(file.parents)
        if is_image_name(file.name):
            with_images.update(file.parents)
        elif file.suffix.lower() not in _EXPECTED and file.name.lower() not in _EXPECTED_NAMES:
            others.append(file)
    if others:
        yield _of_other_kinds(others, with_images)
    named = {_outermost(file, with_images) for file in others}
    with_files.update(folder for name in datasets for folder in PurePosixPath(name).parents)
    depth = layout.count("/") + 1
    lost: set[PurePosixPath] = set()
    for folder in _folders(root, PurePosixPath(), depth):
        # A folder of lists and notes beside the domains has not lost anything; an empty one may have.
        hollow = folder not in with_files or (len(folder.parts) == depth and folder not in with_images)
        if hollow and not (named | lost) & {folder, *folder.parents}:
            lost.add(folder)
    if lost:
        yield f"{count(len(lost), 'folder has', 'folders have')} no image: {few_quoted(sorted(map(str, lost)))}"


def _folders(root: Path, inside: PurePosixPath, depth: int) -> Iterator[PurePosixPath]:
    """The folders of the layout's levels, outer ones first; datasets are none of them."""
    for name in folders_in(root / inside) if depth else ():
        if not is_whole_dataset(root / inside / name):
            yield inside / name
            yield from _folders(root, inside / name, depth - 1)


def _of_other_kinds(others: list[PurePosixPath], with_images: set[PurePosixPath]) -> str:
    without = sorted({str(outer) for file in others if (outer := _outermost(file, with_images)) is not None})
    number = count(len(others), "file of another kind was", "files of other kinds were")
    nothing = f"; no image in {few_quoted(without)}" if without else ""
    return f"{number} ignored: {_by_suffix(others)}{nothing}"


def _outermost(file: PurePosixPath, with_images: set[PurePosixPath]) -> PurePosixPath | None:
    """The outermost folder around a file in which there is no image at any depth."""
    return next((folder for folder in reversed(file.parents) if folder not in with_images), None)


def _by_suffix(files: list[PurePosixPath]) -> str:
    found = Counter(file.suffix.lower() or "without a suffix" for file in files)
    counts = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(number for _, number in counts[_SHOWN:])
    shown = [f"{suffix} {number}" for suffix, number in counts[:_SHOWN]]
    return ", ".join([*shown, f"others {rest}"] if rest else shown)
