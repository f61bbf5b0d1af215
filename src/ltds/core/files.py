"""Atomic writes, so that neither a reader nor a crash ever sees half a file."""

from __future__ import annotations

import csv
import ctypes
import errno
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from ltds.core.errors import DataError, LtdsError, expected

PATIENCE = 2.0  # seconds until an open file is an error on Windows


@contextmanager
def atomic(path: Path, size: int | None = None) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an error; else nothing changes.

    `size`: how many bytes it will have, where that is known, for the error if the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path)
    with disk_full_explained(path, size):
        try:
            with temporary.open("xb") as file:  # permissions as the umask says
                yield file
                file.flush()
                os.fsync(file.fileno())
            rename(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def rename(source: Path, target: Path) -> None:
    """Rename a file or folder, also onto a file that exists.

    Windows refuses while another program, such as a virus scanner, has one of them open: then try for two seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(source, target)
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def require_writable(folder: Path) -> None:
    """Raise unless files can be written into a folder, which need not exist yet: to be asked before long work."""
    there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return
    got = f"no permission to write in '{there}'" if there.is_dir() else f"the file '{there}'"
    rule, remedy = "a folder that can be written to", "Choose a place where you may write."
    raise DataError(expected(f"'{folder}'", rule, got, remedy))


def refuse_to_replace(file: Path, what: str, is_ours: Callable[[Path], bool], chosen: str = "name") -> None:
    """Raise if `file` exists and this command did not write it: the name may be mistyped or come from a shell's *.csv.

    `chosen`: what the user chooses of the path, "name" or "folder".
    """
    if not file.is_file() or not file.stat().st_size or is_ours(file):
        return
    got, remedy = "another file, which would be lost", f"Choose another {chosen}, or delete that file."
    raise DataError(expected(f"'{file}'", f"a new file, or {what}", got, remedy))


def has_mark(*marks: str) -> Callable[[Path], bool]:
    """What tells whether a file has one of these texts near its beginning."""

    def is_found(file: Path) -> bool:
        try:
            with file.open("rb") as stream:
                beginning = stream.read(4096)
        except OSError:
            return False
        return any(mark.encode() in beginning for mark in marks)

    return is_found


def has_first_line(*lines: str) -> Callable[[Path], bool]:
    """What tells whether the first line of a file is exactly one of these."""
    return lambda file: first_line_of(file) in lines


def first_line_of(file: Path) -> str:
    """The first line of a text without its end, "" where it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.readline().rstrip("\n")
    except OSError:
        return ""


_PART = re.compile(r"\..*\.[0-9a-f]{12}\.part")


def cut(name: str, size: int) -> str:
    """The beginning of a file's name, at most `size` bytes: most systems allow 255, and a letter may have four."""
    return name.encode(errors="ignore")[:size].decode(errors="ignore")


def _part_of(path: Path) -> Path:
    """A new name next to `path` for what is not complete yet."""
    return path.with_name(f".{cut(path.name, 100)}.{secrets.token_hex(6)}.part")


class DiskFullError(LtdsError):
    """No space is left where a file is to be written."""


@contextmanager
def disk_full_explained(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turn the system's "No space left on device" into a sentence that names the file, the space and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        size = "" if needed is None else f" of {_megabytes(needed)}"
        what = f"room{size} on the disk of '{path}'"
        remedy = (
            "Free some space there, or use another disk. Then type the same command again: if a run has begun, it says "
            "how to resume it."
        )
        raise DiskFullError(f"Expected {what}, but only {_free_space(path)} is left. {remedy}") from error


def _free_space(path: Path) -> str:
    try:
        return _megabytes(shutil.disk_usage(path.parent).free)
    except OSError:
        return "no space"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def require_vacant(folder: Path) -> None:
    """Raise FileExistsError unless nothing is there, or an empty folder: to be asked before long work."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into; it appears as `path` only when the block ends without an error, else nothing changes.

    `path` must not exist, or be an empty folder; otherwise FileExistsError.
    """
    require_vacant(path)
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path.absolute())
    temporary.mkdir()
    try:
        yield temporary
        if sys.platform == "win32" and path.exists():  # it replaces no folder, not even an empty one
            path.rmdir()
        rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def flush_disk(folder: Path) -> None:
    """Return when everything written to the disk of this folder is safe there.

    Linux can do this for one disk. `os.sync` waits for all of them, for ever if one is a share whose server is gone.
    """
    if not sys.platform.startswith("linux"):
        if hasattr(os, "sync"):
            os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    with atomic(path, len(content)) as file:
        file.write(content)


def link_or_copy(source: Path, target: Path) -> None:
    """The same file under a second name where the disk allows that, else a copy. Neither may be changed in place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        with source.open("rb") as stream, atomic(target) as file:
            shutil.copyfileobj(stream, file)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue())


def write_json(path: Path, value: Any) -> None:
    """Write JSON that any reader accepts; NaN is not JSON and raises an error."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def sha256(path: Path) -> str:
    """The file's SHA-256, read piece by piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cached_sha256(path: Path) -> str:
    """As `sha256`, but computed once as long as the file stays as it is: a grid asks for each of its runs."""
    status = path.stat()
    return _checksum(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _checksum(file: Path, size: int, modified: int) -> str:
    return sha256(file)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder that this process has locked: nobody writes there now.

    Not in folders below: they may be those of others.
    """
    for unfinished in folder.glob(".*.part"):
        if not _PART.fullmatch(unfinished.name):  # another program's
            continue
        if unfinished.is_dir() and not unfinished.is_symlink():
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            unfinished.unlink(missing_ok=True)
