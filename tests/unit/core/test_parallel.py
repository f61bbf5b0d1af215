"""One executor: results of every chunk, errors at once, and no worker that outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import parallel_work as work
import pytest

from ltds.core import parallel
from ltds.core.errors import DataError
from ltds.core.parallel import WorkerError, run_chunks


def quiet(amount: int = 1, note: str = "") -> None:
    pass


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def until(condition, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("workers", "take_part"), [(1, False), (3, False), (3, True)])
def test_every_chunk_has_its_result_and_its_progress(workers: int, take_part: bool) -> None:
    told: list[tuple[int, str]] = []
    found = dict(
        run_chunks(work.square, range(20), workers, lambda n=1, note="": told.append((n, note)), take_part=take_part)
    )
    assert {number: value for number, (value, _) in found.items()} == {n: n * n for n in range(20)}
    assert sum(n for n, _ in told) == 20
    assert all(note.startswith("chunk ") for _, note in told)
    processes = {pid for _, pid in found.values()}
    if workers == 1:
        assert processes == {os.getpid()}
    elif not take_part:
        assert os.getpid() not in processes
    assert not [t for t in threading.enumerate() if t.name == parallel.THREAD_NAME]


def test_results_come_in_the_order_of_completion() -> None:
    assert [number for number, _ in run_chunks(work.sleep, [1.0, 0.0], 2, quiet)] == [1, 0]


def test_the_first_error_ends_all_at_once_and_says_where() -> None:
    start = time.monotonic()
    with pytest.raises(DataError, match="Expected another chunk") as caught:
        list(run_chunks(work.fail, [0, 1, 0, 0], 2, quiet))
    assert time.monotonic() - start < 30
    assert any("parallel_work.py" in note for note in caught.value.__notes__)


def test_an_error_that_cannot_be_sent_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match="a worker process failed") as caught:
        list(run_chunks(work.unpicklable_error, [0, 1], 2, quiet))
    assert any("LocalError: cannot be sent" in note for note in caught.value.__notes__)


def test_a_worker_that_dies_is_an_error_with_a_remedy() -> None:
    with pytest.raises(WorkerError, match=r"but got one that ended.*lack of memory.*fewer than 2 processes"):
        list(run_chunks(work.die_in_a_worker, [os.getpid()] * 3, 2, quiet))


def test_this_process_takes_over_from_a_worker_that_dies() -> None:
    told = 0

    def advance(amount: int = 1, note: str = "") -> None:
        nonlocal told
        told += amount

    here = os.getpid()
    assert sorted(run_chunks(work.die_in_a_worker, [here] * 4, 3, advance, take_part=True)) == [
        (n, here) for n in range(4)
    ]
    assert told == 20, "what the dead workers had reported is taken back"


def test_without_any_worker_this_process_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(parallel, "start_worker", refused)
    found = dict(run_chunks(work.square, range(5), 3, quiet))
    assert found == {n: (n * n, os.getpid()) for n in range(5)}


def test_what_a_worker_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert sorted(run_chunks(work.print_and_return, ["a", "b"], 2, quiet)) == [(0, "a"), (1, "b")]
    assert capfd.readouterr().err.count("a line that is no answer") == 2


def test_setup_runs_in_each_worker_and_not_here() -> None:
    found = dict(run_chunks(work.read_environment, range(3), 2, quiet, setup=work.mark_environment))
    assert set(found.values()) == {"done"}
    assert "LTDS_TEST_SETUP" not in os.environ


def test_leaving_the_loop_ends_the_workers() -> None:
    results = run_chunks(work.sleep, [0.0, 60.0, 60.0], 2, quiet)
    assert next(results) == (0, 0.0)
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 10
    assert not [t for t in threading.enumerate() if t.name == parallel.THREAD_NAME]


def test_the_script_of_the_user_is_not_run_again(tmp_path: Path) -> None:
    """No `if __name__ == "__main__"` is needed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import parallel_work as work\nfrom ltds.core.parallel import run_chunks\n"
        "print('started')\n"
        "print(sorted(r for _, (r, _) in run_chunks(work.square, range(4), 2, lambda amount=1, note='': None)))\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("started\n[0, 1, 4, 9]\n", "")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_a_killed_parent_leaves_no_worker_behind(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import parallel_work as work; from ltds.core.parallel import run_chunks; "
        f"list(run_chunks(work.write_then_sleep, [Path({str(tmp_path)!r})] * 3, 3, lambda amount=1, note='': None))"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    assert until(lambda: len(list(tmp_path.iterdir())) == 3)
    workers = [int(file.name) for file in tmp_path.iterdir()]
    assert all(map(alive, workers))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert until(lambda: not any(map(alive, workers)), 5.0)


def test_without_help_of_linux_a_worker_still_notices(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from ltds.core import worker; "
        "worker._killed_by_linux = lambda: False; worker.exit_with_parent(int(sys.argv[1])); "
        "Path(sys.argv[2], str(os.getpid())).touch(); time.sleep(60)"
    )
    starter = (
        "import os, subprocess, sys, time; "
        f"subprocess.Popen([sys.executable, '-c', {code!r}, str(os.getpid()), {str(tmp_path)!r}]); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starter])
    assert until(lambda: len(list(tmp_path.iterdir())) == 1)
    (child,) = (int(file.name) for file in tmp_path.iterdir())
    parent.kill()
    parent.wait()
    assert until(lambda: not alive(child), 5.0)


def test_a_worker_on_windows_waits_for_the_one_that_started_it() -> None:
    """Not for its parent, which is the python.exe of a virtual environment."""
    code = """
import importlib, os, sys, threading, time
from types import SimpleNamespace
from ltds.core import worker
ended = threading.Event()
def wait(process, milliseconds):
    assert process == 12345
    ended.wait()
api = SimpleNamespace(SYNCHRONIZE=1, INFINITE=-1, OpenProcess=lambda access, inherit, number: number)
api.WaitForSingleObject = wait
sys.modules["_winapi"] = api
sys.platform = "win32"
importlib.reload(worker)
worker.exit_with_parent(12345)
print("runs", flush=True)
ended.set()
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.stdout.strip(), done.returncode) == ("runs", 1), done.stderr
