"""System calls as other disks and systems answer them."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Any


def no_links(source: object, target: object, target_is_directory: bool = False) -> None:
    """`os.symlink` and `os.link` on Google Drive, exFAT or SMB."""
    raise PermissionError(errno.EPERM, "Operation not permitted", str(source), None, str(target))


_FSYNC = os.fsync


def fsync_of_writers(handle: int) -> None:
    """`os.fsync` on Windows, which flushes no file that is open for reading only."""
    if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    _FSYNC(handle)


_STAT = os.stat


def stat_without_numbers(path: str | os.PathLike[str], **options: Any) -> os.stat_result:
    """`os.stat` on WebDAV and sshfs for Windows: no file has an inode number."""
    mode, _, *others = _STAT(path, **options)
    return os.stat_result((mode, 0, *others))
