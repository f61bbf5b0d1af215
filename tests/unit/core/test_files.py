"""Atomic files: permissions, a full disk, leftovers."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from ltds.core.files import (
    DiskFullError,
    atomic,
    atomic_folder,
    remove_leftovers,
    write_bytes,
    write_csv,
    write_text,
)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_what_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a.txt", "x")
        with atomic_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~mask


def test_a_full_disk_names_the_file_and_the_space(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    sentence = r"room on the disk of '.*a\.bin', but only .* MB is left\. Free some"
    with (
        pytest.raises(DiskFullError, match=sentence),
        atomic(tmp_path / "a.bin"),
        full.open("wb", buffering=0) as stream,
    ):
        stream.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_too_large_for_the_disk_names_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(DiskFullError, match=r"room of 2\.5 MB on the disk of '.*a\.bin'"):
        write_bytes(tmp_path / "a.bin", bytes(2_500_000))


def test_the_space_that_is_left_is_that_without_the_unfinished_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had filled the disk, and is gone when the user looks."""
    seen: list[list[Path]] = []

    def usage(folder: Path) -> SimpleNamespace:
        seen.append(list(folder.iterdir()))
        return SimpleNamespace(free=6_000_000)

    def fill(file: IO[bytes]) -> None:
        file.write(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "disk_usage", usage)
    sentence = r"only 6\.0 MB is left\. .*type the same command again"
    with pytest.raises(DiskFullError, match=sentence), atomic(tmp_path / "a.bin") as file:
        fill(file)
    assert seen == [[]]


def test_rows_are_written_as_csv(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [["class", "a,b"], ("größe", 0.5), iter(['say "x"', ""])])
    assert (tmp_path / "t.csv").read_bytes() == 'class,"a,b"\ngröße,0.5\n"say ""x""",\n'.encode()


def test_leftovers_are_parts_only(tmp_path: Path) -> None:
    (tmp_path / "kept.part").touch()
    (tmp_path / ".kept").touch()
    (tmp_path / ".download.part").touch()
    (tmp_path / ".a.0123456789ab.part").touch()
    (tmp_path / ".b.ba9876543210.part").mkdir()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".download.part", ".kept", "kept.part"]
