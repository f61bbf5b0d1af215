"""A share of `make soak`: kills, damaged and invented files, flipped bits, a full disk, races."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the soak forks its children")
def test_a_share_of_the_soak() -> None:
    """In a process of its own: it forks, and a process of pytest has threads."""
    words = [sys.executable, str(Path(__file__).parent / "run.py"), "--share"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5000:]
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    tries = {row[0].removeprefix("| "): int(row[1]) for row in rows[1:]}
    assert len(tries) == 8
    assert tries["SIGKILL in training, resumed"] >= 5
    assert tries["damaged real file read"] >= 500
