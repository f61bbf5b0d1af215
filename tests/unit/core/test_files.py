"""Atomic files and locks: permissions, a full disk, leftovers, and several processes at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ltds.core.files import (
    DiskFullError,
    LockedError,
    atomic,
    atomic_folder,
    locked,
    remove_leftovers,
    temporary_folder,
    write_bytes,
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


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path / "x", wait=True):
            order.append("second")

    with locked(tmp_path / "x"):
        with pytest.raises(LockedError), locked(tmp_path / "x"):
            pass
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]


def test_folders_of_killed_processes_are_removed_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from ltds.core.files import temporary_folder;"
        "context = temporary_folder(Path(sys.argv[1]), '.building-'); folder = context.__enter__();"
        "(folder / 'half').touch(); os.kill(os.getpid(), 9)"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1  # each removes that of the one before
    with temporary_folder(tmp_path, ".building-") as one, temporary_folder(tmp_path, ".building-") as two:
        assert sorted(tmp_path.iterdir()) == sorted([one, two])
    assert list(tmp_path.iterdir()) == []


def test_leftovers_are_parts_only(tmp_path: Path) -> None:
    (tmp_path / "kept.part").touch()
    (tmp_path / ".kept").touch()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ".a.12.part").touch()
    (tmp_path / ".b.34.part").mkdir()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".kept", "in", "kept.part"]
