"""Locks on folders: between threads and processes, after kills, on other systems than Linux, and over NFS."""

from __future__ import annotations

import errno
import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ltds.core import locks, mounts
from ltds.core.errors import LtdsWarning
from ltds.core.locks import LockedError, acquire, locked, temporary_folder
from ltds.core.mounts import without_shared_locks


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
        "import os, sys; from pathlib import Path; from ltds.core.locks import temporary_folder;"
        "context = temporary_folder(Path(sys.argv[1]), '.building-'); folder = context.__enter__();"
        "(folder / 'half').touch(); os.kill(os.getpid(), 9)"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1  # each removes that of the one before
    with temporary_folder(tmp_path, ".building-") as one, temporary_folder(tmp_path, ".building-") as two:
        assert sorted(tmp_path.iterdir()) == sorted([one, two])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_and_a_kept_folder_stays(tmp_path: Path) -> None:
    with locked(tmp_path / "a" / "b"):
        assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [".lock"]
    assert not (tmp_path / "a" / "b").exists()
    with locked(tmp_path / "c"):
        (tmp_path / "c" / "file").touch()
    assert os.listdir(tmp_path / "c") == ["file"]


def test_many_processes_take_turns(tmp_path: Path) -> None:
    """Each adds one to a number that it reads and writes; the folder itself comes and goes."""
    code = (
        "import sys; from pathlib import Path; from ltds.core.locks import locked\n"
        "number = Path(sys.argv[1])\n"
        "for _ in range(50):\n"
        "    with locked(Path(sys.argv[2]), wait=True): number.write_text(str(int(number.read_text()) + 1))"
    )
    (tmp_path / "number").write_text("0")
    words = [sys.executable, "-c", code, str(tmp_path / "number"), str(tmp_path / "folder")]
    processes = [subprocess.Popen(words) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "number").read_text() == "200"
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("kind", ["file", "link to nothing"])
def test_what_is_no_folder_is_an_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.touch()
    else:
        path.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError), locked(path):
        pass


def test_a_folder_that_is_removed_while_it_is_looked_at_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, attempts = tmp_path / "folder", []
    mkdir = Path.mkdir

    def removed_meanwhile(path: Path, **options: bool) -> None:
        attempts.append(path)
        if len(attempts) == 1:  # what pathlib does where the folder was there, and is not any more
            raise FileExistsError(path)
        mkdir(path, **options)

    monkeypatch.setattr(Path, "mkdir", removed_meanwhile)
    with locked(folder):
        assert folder.is_dir()
    assert len(attempts) == 2


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from ltds.core.locks import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert os.listdir(tmp_path) == [".lock"]
    with locked(tmp_path):
        (tmp_path / "file").touch()
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_system_without_locks_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", none)
    said = r"has no locks \(No locks available\)\. Take care that only one process"
    with pytest.warns(LtdsWarning, match=said), locked(tmp_path / "x"):
        pass


MOUNTS = r"""
22 1 8:1 / / rw,relatime - ext4 /dev/vda rw
36 22 0:41 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none,addr=10.0.0.1
37 22 0:42 / /old rw - nfs server:/old rw,vers=3,nolock,addr=10.0.0.1
38 22 0:43 / /my\040data rw shared:7 - nfs server:/data rw,vers=3,local_lock=flock
39 37 8:2 / /old/disk rw - ext4 /dev/vdb rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "share"),
    [
        ("/home/run", None),
        ("/old/run", "/old"),
        ("/older", None),
        ("/my data/run", "/my data"),
        ("/old/disk/run", None),
    ],
)
def test_shares_whose_locks_hold_on_one_machine_only(tmp_path: Path, folder: str, share: str | None) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert without_shared_locks(folder, tmp_path / "mountinfo") == share
    assert without_shared_locks(folder, tmp_path / "none") is None


def test_such_a_share_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "without_shared_locks", lambda folder: "/share")
    with pytest.warns(LtdsWarning, match="'/share' is mounted without locks between machines"), locked(tmp_path / "x"):
        pass
    assert mounts.TABLE.is_file() == sys.platform.startswith("linux")


def test_the_code_for_windows(tmp_path: Path) -> None:
    """Not on Windows, but with its branches: msvcrt is made of flock here, and has no waiting lock."""
    code = """
import errno, fcntl, sys, types
from pathlib import Path
def locking(handle, mode, count):
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "Permission denied") from error
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
sys.modules["fcntl"] = None
import ltds.core.errors
sys.platform = "win32"
import threading
from ltds.core.locks import LockedError, locked
folder = Path(sys.argv[1])
with locked(folder):
    try:
        with locked(folder):
            print("twice")
    except LockedError:
        print("refused")
    def wait():
        with locked(folder, wait=True):
            print("waited")
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.3)
    print("first")
thread.join()
print(folder.exists())
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True)
    assert done.stdout.split() == ["refused", "first", "waited", "False"], done.stderr


def test_an_open_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (tmp_path / "file").open() as first, (tmp_path / "file").open() as second:
        assert acquire(first.fileno(), wait=False)
        assert not acquire(second.fileno(), wait=False)
        first.close()
        assert acquire(second.fileno(), wait=False)


@pytest.mark.parametrize("call", ["open", "flock", "fstat"])
def test_a_lock_file_that_nfs_calls_stale_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """So it is called where another machine has removed it, when it released the lock."""
    module = locks.fcntl if call == "flock" else os
    real, calls = getattr(module, call), []

    def stale_at_first(*given: Any) -> Any:
        calls.append(given)
        if len(calls) > 1:
            return real(*given)
        (tmp_path / ".lock").unlink(missing_ok=True)
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(module, call, stale_at_first)
    with locked(tmp_path, wait=True):
        assert (tmp_path / ".lock").is_file()
    assert len(calls) > 1


def test_a_lock_file_that_was_removed_is_made_again_although_nfs_remembers_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []

    def removed_on_the_server(handle: int, wait: bool) -> bool:
        if not removed:
            removed.append(tmp_path / ".lock")
            removed[0].unlink()
        return True

    monkeypatch.setattr(locks, "acquire", removed_on_the_server)
    monkeypatch.setattr(locks, "_is", lambda file, handle: True)
    with locked(tmp_path):
        assert (tmp_path / ".lock").is_file()


def test_what_a_mac_says_where_there_are_no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errno, "ENOTSUP", 45)
    monkeypatch.setattr(errno, "EOPNOTSUPP", 102)
    assert {45, 102} <= set(runpy.run_path(locks.__file__)["NO_LOCKS"])
