"""Which files are images, and those in and below a folder: hidden files never, links as what they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

SUFFIXES = frozenset(  # of the formats that data/decode.py reads; a file that this Pillow cannot read is then named
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx", ".avif", ".heic", ".heif"),
    }
)
FileId = tuple[int, int] | str


def is_missing(path: str | Path, *, links: bool = True) -> bool:
    """Whether there is no file of this name; a link that leads nowhere counts as a file if `links`."""
    return not os.path.isfile(path) and not (links and leads_nowhere(path))


def leads_nowhere(path: str | Path) -> bool:
    """Whether this is a link without its target, as git-annex and DVC leave them until the content is fetched."""
    return os.path.islink(path) and not os.path.exists(path)


def images_in(folder: Path) -> list[str]:
    """The names of the image files in a folder, sorted; hidden files and other types are ignored.

    A link that leads nowhere is among them: an image that cannot be read, which somebody should hear of.
    """
    return _files_in(folder, is_image_name)


def _files_in(folder: Path, is_wanted: Callable[[str], bool]) -> list[str]:
    with os.scandir(folder) as entries:
        shown = (e for e in entries if not e.name.startswith(".") and is_wanted(e.name))
        return sorted(e.name for e in shown if _leads_to(e.is_file) or leads_nowhere(e.path))


def is_image_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def folders_in(folder: Path) -> list[str]:
    """The names of the folders in a folder, sorted; hidden ones are ignored."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if not e.name.startswith(".") and _leads_to(e.is_dir))


def file_id(path: Path) -> FileId:
    """What tells a file or folder from all others, whatever link leads to it."""
    status = os.stat(path)
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)  # 0: some network disks


def images_below(
    folder: Path, above: frozenset[FileId] = frozenset(), *, without_datasets: bool = False
) -> Iterator[str]:
    """Paths, relative to the folder, of all images in it and below it, sorted folder by folder.

    Linked folders are read as well; a link to a folder above itself, which would never end, is ignored.
    `without_datasets`: the images of datasets inside the folder are not among them.
    """
    return _below(folder, images_in, above, without_datasets)


def files_below(folder: Path) -> Iterator[str]:
    """As `images_below`, files of all kinds; hidden ones and those of datasets inside the folder are not among them."""
    return _below(folder, lambda inner: _files_in(inner, lambda name: True), frozenset(), without_datasets=True)


def _below(
    folder: Path, found_in: Callable[[Path], list[str]], above: frozenset[FileId], without_datasets: bool
) -> Iterator[str]:
    own = file_id(folder)
    if own in above:
        return
    yield from found_in(folder)
    for name in folders_in(folder):
        if not (without_datasets and is_whole_dataset(folder / name)):
            below = _below(folder / name, found_in, above | {own}, without_datasets)
            yield from (f"{name}/{path}" for path in below)


def datasets_below(folder: Path, above: frozenset[FileId] = frozenset()) -> Iterator[str]:
    """Paths, relative to the folder, of the datasets inside it, sorted folder by folder."""
    own = file_id(folder)
    if own in above:
        return
    for name in folders_in(folder):
        if is_whole_dataset(folder / name):
            yield name
        else:
            yield from (f"{name}/{path}" for path in datasets_below(folder / name, above | {own}))


def is_whole_dataset(folder: Path) -> bool:
    """Whether both files of a dataset are there: one of these names alone may belong to something else."""
    return all((folder / name).is_file() for name in ("manifest.csv", "manifest.json"))


def _leads_to(kind: Callable[[], bool]) -> bool:
    """Whether an entry is of this kind; False for a link that leads to itself."""
    try:
        return kind()
    except OSError:
        return False
