"""Atomic writes, so that neither a reader nor a crash ever sees half a file; and locks on folders."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ltds.core.errors import LtdsError


@contextmanager
def atomic(path: Path, size: int | None = None) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an error; else nothing changes.

    `size`: how many bytes it will have, where that is known, for the error if the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path)
    try:
        with disk_full_explained(path, size), temporary.open("xb") as file:  # permissions as the umask says
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _part_of(path: Path) -> Path:
    """A new name next to `path` for what is not complete yet."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.part")


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
        remedy = "Free some space there and type the same command again (a run: resume it); or use another disk."
        raise DiskFullError(f"Expected {what}, but only {_free_space(path)} is left. {remedy}") from error


def _free_space(path: Path) -> str:
    try:
        return _megabytes(shutil.disk_usage(path.parent).free)
    except OSError:
        return "no space"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into; it appears as `path` only when the block ends without an error, else nothing changes.

    `path` must not exist, or be an empty folder; otherwise FileExistsError.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = _part_of(path.absolute())
    temporary.mkdir()
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


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


def write_json(path: Path, value: Any) -> None:
    """Write JSON that any reader accepts; NaN is not JSON and raises an error."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def sha256(path: Path) -> str:
    """The file's SHA-256, read piece by piece."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class LockedError(Exception):
    """Another process has locked the folder."""


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Create the folder and lock it for this process. An empty folder is removed afterwards.

    Where another process has locked it: raise LockedError, or `wait` until that one has finished.
    """
    handle = _lock(folder, wait)
    try:
        yield
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        os.close(handle)


def _lock(folder: Path, wait: bool) -> int:
    """An open handle of the folder that holds its lock."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # whoever held the lock has just removed the empty folder
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            os.close(handle)
            raise LockedError(str(folder)) from error
        if folder.exists() and os.path.samestat(os.fstat(handle), os.stat(folder)):
            return handle
        os.close(handle)  # locked, but removed meanwhile


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `parent` for unfinished work, removed at the end; those of killed processes are removed first.

    A process keeps the lock of its folder while it lives, so that a folder that can be locked is abandoned.
    """
    with locked(parent, wait=True):
        for abandoned in parent.glob(f"{glob.escape(prefix)}*"):
            with suppress(LockedError, OSError), locked(abandoned):
                shutil.rmtree(abandoned, ignore_errors=True)
        folder = parent / f"{prefix}{secrets.token_hex(6)}"
        handle = _lock(folder, wait=False)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder and below, which this process has locked: nobody writes there now."""
    for unfinished in folder.rglob(".*.part"):
        if unfinished.is_dir() and not unfinished.is_symlink():
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            unfinished.unlink(missing_ok=True)
