"""What tests of the command line share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

PROGRAM = [sys.executable, "-c", "from ltds.cli.main import run; run()"]  # the command line as a process of its own
Command = Callable[..., subprocess.CompletedProcess[str]]  # the fixture `command`: words, and the folder as `cwd`
QUICK = [
    *("--set", "backbone.name=tiny", "--set", "data.size=16", "--set", "data.batch_size=8", "--set", "run.threads=1"),
    *("--set", "schedule.epochs=2", "--set", "schedule.steps_per_epoch=2"),
]


def refused(done: subprocess.CompletedProcess[str], *texts: str) -> None:
    """A user error: exit code 2, a sentence, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for text in texts:
        assert text in done.stderr
