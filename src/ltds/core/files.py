"""Atomic writes, so that neither a reader nor a crash ever sees half a file; and locks on folders."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an error; else nothing changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into; it appears as `path` only when the block ends without an error, else nothing changes.

    `path` must not exist, or be an empty folder; otherwise FileExistsError.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=".part"))
    try:
        yield temporary
        temporary.chmod(0o755)
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    with atomic(path) as file:
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
def locked(folder: Path) -> Iterator[None]:
    """Create the folder and lock it for this process, or raise LockedError. An empty folder is removed afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise LockedError(str(folder)) from error
    try:
        yield
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
        os.close(handle)
