"""Symbolic links, which some disks cannot hold: Google Drive, SMB shares, exFAT, or Windows without Developer Mode."""

from __future__ import annotations

import errno
import secrets
from pathlib import Path

from ltds.core.errors import DataError, expected

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}  # EINVAL: Windows
ON_A_DISK_WITH_LINKS = "on a disk that can hold symbolic links, through which a dataset finds its images"


class NoLinksError(DataError):
    """A disk without symbolic links."""


def make_link(link: Path, target: Path) -> None:
    """A link to a file or folder; NoLinksError where the disk cannot hold it."""
    try:
        link.symlink_to(target, target_is_directory=target.is_dir())  # Windows has two kinds of links
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        remedy = "Choose another folder, on another disk."
        raise NoLinksError(expected(f"'{link.parent}'", ON_A_DISK_WITH_LINKS, f"'{error.strerror}'", remedy)) from error


def require_links(folder: Path) -> None:
    """Raise unless a folder, which need not exist yet, can hold links: to be asked before long work."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    link = there / f".link-{secrets.token_hex(6)}.part"
    make_link(link, there)
    link.unlink()
