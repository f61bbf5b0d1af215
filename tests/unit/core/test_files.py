"""Atomic files: permissions, a full disk, leftovers."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from ltds.core import files
from ltds.core.files import (
    DiskFullError,
    atomic,
    atomic_folder,
    flush_disk,
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


class Busy:
    """`os.replace` while a virus scanner has the file open."""

    def __init__(self, times: int) -> None:
        self.times, self.real = times, os.replace

    def __call__(self, source: Path, target: Path) -> None:
        self.times -= 1
        if self.times >= 0:
            raise PermissionError(13, "Access is denied")
        self.real(source, target)


def test_windows_waits_for_a_scanner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "replace", Busy(3))
    write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    monkeypatch.setattr(os, "replace", Busy(10**6))
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    with pytest.raises(PermissionError):
        write_text(tmp_path / "a", "newer")
    assert (tmp_path / "a").read_text() == "new"


def test_other_systems_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", Busy(1))
    with pytest.raises(PermissionError):
        write_text(tmp_path / "a", "new")


@pytest.mark.parametrize(
    "name",
    ["図" * 80 + ".csv", "é" * 120, "a" * 250, os.fsdecode(b"\xff\xfe")],
    ids=["Chinese", "accents", "plain", "no text"],
)
def test_names_that_are_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    with atomic(tmp_path / name) as file:
        (unfinished,) = os.listdir(tmp_path)
        file.write(b"x")
    assert os.listdir(tmp_path) == [name]
    (tmp_path / unfinished).touch()
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == [name]


def test_one_disk_is_flushed_and_what_went_wrong_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sync", None)  # it would wait for every disk of the machine
    flush_disk(tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: SimpleNamespace(syncfs=lambda handle: -1))
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        flush_disk(tmp_path)
    synced: list[bool] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(os, "sync", lambda: synced.append(True))
    flush_disk(tmp_path)
    assert synced == [True]
