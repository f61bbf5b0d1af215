"""A command that is killed, so that it cannot clean up, leaves none of its worker processes behind."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import PROGRAM

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc to see the processes"),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: no workers are started"),
]


def children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def workers_after_kill(words: list[str], cwd: Path, at_work: Callable[[], bool]) -> list[int]:
    """Kill the command when it is at work; its workers that still run ten seconds later."""
    process = subprocess.Popen([*PROGRAM, *words], cwd=cwd)
    try:
        assert until(lambda: at_work() and len(children(process.pid)) > 0, 120)
        workers = children(process.pid)
        assert all(map(running, workers))
    finally:
        process.kill()
        process.wait()
    until(lambda: not any(map(running, workers)), 10)
    return list(filter(running, workers))


def test_building_bestiary(tmp_path: Path) -> None:
    words = ["data", "build", "bestiary", "--out", "large", "--set", "size=224"]
    assert workers_after_kill(words, tmp_path, lambda: any((tmp_path / "large").rglob("*.png"))) == []
    assert not (tmp_path / "large" / "manifest.json").exists()


def test_stylising(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (400, 500, 3), dtype=np.uint8)
    for number in range(400):
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png", compress_level=0)
    words = ["data", "stylize", "photos", "--style", "classical:oil", "--out", "oil"]
    words += ["--jobs", "2", "--batch-size", "1"]
    assert workers_after_kill(words, tmp_path, lambda: any((tmp_path / "oil").rglob("*.png"))) == []
