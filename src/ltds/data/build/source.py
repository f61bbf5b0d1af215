"""The folder of a dataset's images, the lists that name them, and errors that say where to get them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.core.text import few_quoted, reading
from ltds.data.image_files import is_missing, leads_nowhere

LINK = "source"


def broken_link(root: Path) -> str:
    """What to do if the link to the images leads nowhere, as text to append to an error message; or ""."""
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
    rule = f"a folder that contains {few_quoted(holds)}" if holds else "a folder"
    got = f"no {few_quoted(missing)} in '{best}'" if source.is_dir() else "nothing: there is no such folder"
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
            plain = _normal(path)  # ./a.png is a.png
            return None if plain.split("/")[0] == ".." else plain
        folder, name = os.path.split(path)
        relative = below(folder)
        return None if relative is None else _normal(os.path.join(relative, name))

    return relative_path


def _normal(path: str) -> str:
    """The path without '.' and inner '..', with / on all systems, as manifests have it."""
    return os.path.normpath(path).replace(os.sep, "/")


def require_files(root: Path, names: Iterable[str], what: str, where: str, *, links: bool = False) -> None:
    """Raise one error that counts and names the files that are not in `root`.

    `links`: those that lead nowhere are ignored here, because somebody will name them as damaged images.
    """
    missing = [name for name in names if is_missing(os.path.join(root, name), links=links)]
    if missing:
        got = f"{len(missing)} missing: {few_quoted(missing)}"
        raise DataError(expected(f"{what} in '{root}'", "complete", got, _windows_hint(missing) + where))


def _windows_hint(paths: Iterable[str]) -> str:
    """What to do about the backslashes of Windows, if all of these paths have some."""
    if os.sep == "\\" or not all("\\" in path for path in paths):
        return ""
    return "They look like Windows paths: write them with / instead of \\, relative to the folder of the images. "


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
