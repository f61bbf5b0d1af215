"""The folder of a dataset's images, the lists that name them, and errors that say where to get them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.core.text import reading

LINK = "source"
SUFFIXES = frozenset(  # of the formats that data/decode.py reads; a file that this Pillow cannot read is then named
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx", ".avif", ".heic", ".heif"),
    }
)
_SHOWN = 5
FileId = tuple[int, int]


def broken_link(root: Path) -> str:
    """What to do if the link of a dataset to its images leads nowhere, as a sentence and a half; "" if it does not."""
    link = root / LINK
    if not leads_nowhere(link):
        return ""
    return (
        f"its link '{link}' leads to '{os.readlink(link)}', where nothing is any more. Move the images back, or "
        "replace the link by one to the folder where they are now."
    )


def find_root(source: Path, below: Sequence[str], holds: Sequence[str], where: str) -> Path:
    """The folder `source`, or one of the folders `below` it, that contains the folders or files `holds`."""
    tried = [source / inner for inner in ("", *below)]
    for folder in tried:
        if folder.is_dir() and all((folder / name).exists() for name in holds):
            return folder
    best = max(tried, key=lambda folder: sum((folder / name).exists() for name in holds))
    missing = [name for name in holds if not (best / name).exists()]
    rule = f"a folder that contains {first_few(holds)}" if holds else "a folder"
    got = f"no {first_few(missing)} in '{best}'" if source.is_dir() else "nothing: there is no such folder"
    looked = f"Looked in {', '.join(repr(str(folder)) for folder in tried)}."
    raise DataError(expected(f"argument 'source' ('{source}')", rule, got, f"{looked} {where}"))


def relative_to(root: Path) -> Callable[[str], str | None]:
    """A function from a list's path to the same path relative to `root`; None if it is outside.

    Absolute paths may go through links, as may `root`. Below `root` a path is kept as it is written, because a folder
    in the source may itself be a link to another disk.
    """
    end = root.resolve()

    @cache  # lists name many images of few folders
    def below(folder: str) -> str | None:
        whole = Path(os.path.normpath(folder))
        for parent in (whole, *whole.parents):
            if parent.resolve() == end:
                return os.path.relpath(whole, parent)
        resolved = Path(folder).resolve()
        return os.path.relpath(resolved, end) if resolved.is_relative_to(end) else None

    def relative_path(path: str) -> str | None:
        if not os.path.isabs(path):
            plain = os.path.normpath(path)  # ./a.png is a.png
            return None if plain.split("/")[0] == ".." else plain
        folder, name = os.path.split(path)
        relative = below(folder)
        return None if relative is None else os.path.normpath(os.path.join(relative, name))

    return relative_path


def require_files(root: Path, names: Iterable[str], what: str, where: str, *, links: bool = False) -> None:
    """Raise one error that counts and names the files that are not in `root`.

    `links`: those that lead nowhere are no concern here, because somebody will name them as damaged images.
    """
    missing = [name for name in names if is_missing(os.path.join(root, name), links=links)]
    if missing:
        got = f"{len(missing)} missing: {first_few(missing)}"
        raise DataError(expected(f"{what} in '{root}'", "complete", got, _windows_hint(missing) + where))


def _windows_hint(paths: Iterable[str]) -> str:
    """What to do about the backslashes of Windows, if all of these paths have some."""
    if os.sep == "\\" or not all("\\" in path for path in paths):
        return ""
    return "They look like Windows paths: write them with / instead of \\, relative to the folder of the images. "


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
    return status.st_dev, status.st_ino


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


def read_list(file: Path, where: str) -> Iterator[tuple[str, int]]:
    """(path, label) of each line of a list, one line at a time; blank lines are ignored."""
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a list of 'path label' lines", "nothing there", where))
    with reading(file) as stream:
        for number, line in enumerate(stream, 1):
            path, _, label = line.rstrip().rpartition(" ")
            if path and label.isdecimal():
                yield path, int(label)
            elif line.strip():
                got, remedy = f"'{line.strip()[:80]}'", "Download the list again."
                raise DataError(expected(f"line {number} of '{file}'", "'path label'", got, remedy))


def digests(files: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file that exists, by name (with a number if a name repeats), to detect changed inputs."""
    hashes: dict[str, str] = {}
    for file in files:
        name, times = file.name, 1
        while name in hashes:
            times += 1
            name = f"{file.name} ({times})"
        if file.is_file():
            hashes[name] = sha256(file)
    return hashes


def first_few(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more
