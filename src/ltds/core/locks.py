"""Locks on folders, which end with their process, however it ends; and folders for unfinished work.

A lock is held on a file `.lock` in the folder, open for writing, because NFS passes no other locks on to its server:
`flock` on the folder itself, or on a file open for reading, fails there. Linux turns `flock` on an NFS file into a lock
of the server, so it also holds between machines, unless the share is mounted with `nolock` or `local_lock`.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ltds.core.errors import LtdsWarning
from ltds.core.mounts import without_shared_locks

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAME = ".lock"
# What file systems without locks say.
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
GONE = {errno.ENOENT, errno.ESTALE}  # ESTALE: NFS, of a file that is open here and was removed on another machine
BYTE = 2**30  # the byte that is locked on Windows, where others could not read it: far behind the end of the file
POLL_SECONDS = 0.1


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
        _release(folder, handle)


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `parent` for unfinished work, removed at the end; those of killed processes are removed first.

    A process keeps the lock of its folder while it lives, so a folder that can be locked is abandoned.
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
        _release(folder, handle)


def _lock(folder: Path, wait: bool) -> int:
    """An open handle of the folder's lock file that holds its lock."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            if _is_no_folder(folder):
                raise
            continue  # it was there when it was to be made, and removed when Python looked what it is
        with _removal_suppressed():  # by whoever held the lock before, together with the empty folder
            handle = _open(folder / NAME)
            try:
                links = os.fstat(handle).st_nlink
                if not acquire(handle, wait):
                    raise LockedError(str(folder))
                if _is(folder / NAME, handle) and os.fstat(handle).st_nlink >= links:
                    _warn_of_local_locks(folder)
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # locked, but removed meanwhile


def _is_no_folder(path: Path) -> bool:
    """Whether something else has this name, also a link to nothing; asked once, because folders come and go."""
    try:
        return not stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # left by another user who was killed; on local disks reading is enough
        return os.open(file, os.O_RDONLY)


def _is(file: Path, handle: int) -> bool:
    with _removal_suppressed():
        return os.path.samestat(os.fstat(handle), os.stat(file))
    return False


@contextmanager
def _removal_suppressed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


def _release(folder: Path, handle: int) -> None:
    """Remove the lock file while it is locked, so that nobody who waits for it takes it for the folder's lock."""
    with suppress(OSError):  # Windows does not remove an open file; there it is removed below
        if _is(folder / NAME, handle):
            os.unlink(folder / NAME)
    os.close(handle)
    if sys.platform == "win32":
        with suppress(OSError):  # fails while somebody else has it open
            os.unlink(folder / NAME)
    with suppress(OSError):  # fails unless it is empty
        folder.rmdir()


def acquire(handle: int, wait: bool) -> bool:
    """Lock an open file until it is closed; False where another process has it, unless `wait`.

    A file system without locks is a warning: work goes on.
    """
    while not _try(handle, wait):
        if not wait:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _try(handle: int, wait: bool) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(handle, BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in NO_LOCKS:
            _warn(f"The file system has no locks ({error.strerror}).")
        elif isinstance(error, BlockingIOError) or error.errno in (errno.EACCES, errno.EDEADLK):
            return False
        else:
            raise
    return True


def _warn_of_local_locks(folder: Path) -> None:
    if share := without_shared_locks(str(folder)):
        _warn(f"'{share}' is mounted without locks between machines (nolock or local_lock).")


def _warn(problem: str) -> None:
    warnings.warn(f"{problem} Take care that only one process at a time works in one folder.", LtdsWarning, 2)
