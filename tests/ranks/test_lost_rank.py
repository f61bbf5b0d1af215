"""A rank that is killed, hangs or fails ends the run in all ranks, in words, within a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.start import resume_run
from toy import recorded, toy_session

LONG = {"schedule": {"epochs": 2000, "steps_per_epoch": 5}, "run": {"ranks": 2, "rank_timeout": 8}}
SCRIPT = "import sys, ltds; ltds.train(resume=sys.argv[1])"


def children(pid: int) -> list[int]:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listing.stdout.split()]


def started(run: RunDirectory, steps: int = 3) -> tuple[subprocess.Popen[bytes], int]:
    """A run of two ranks that has taken some steps: the process of its first rank, and the second's id."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen([sys.executable, "-c", SCRIPT, str(run.path)], env=environment, stderr=subprocess.PIPE)
    until = time.monotonic() + 200
    while time.monotonic() < until and first.poll() is None:
        if len(run.read_journal()) >= steps:
            break
        time.sleep(0.05)
    assert first.poll() is None, first.communicate()[1].decode()
    (second,) = children(first.pid)
    return first, second


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ps and signals as Linux has them")
def test_a_lost_rank_ends_the_run_in_words(toy: Manifest, tmp_path: Path) -> None:
    run = recorded(toy_session(toy, "agg", **LONG), tmp_path / "run")
    first, second = started(run)
    os.kill(second, signal.SIGKILL)
    errors = first.communicate(timeout=60)[1].decode()
    assert "Expected all 2 ranks to train to the end, but got: rank 1 was ended by signal 9" in errors
    assert "resume the run, with any number of ranks" in errors

    first, second = started(run, steps=len(run.read_journal()) + 3)  # one that hangs is noticed after rank_timeout
    os.kill(second, signal.SIGSTOP)
    errors = first.communicate(timeout=100)[1].decode()
    assert "no rank has ended, but one did not answer for 8 s" in errors
    assert not Path(f"/proc/{second}").exists()
    assert not run.done


def test_what_a_rank_says_before_it_fails_is_told(
    toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rank cannot import the backbone, which the first has in memory."""
    import types

    from torch import nn

    from ltds.core.errors import TrainingError

    module = types.ModuleType("only_in_the_first_rank")
    module.Net = lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    groups = {"backbone": {"name": f"{module.__name__}:Net"}, "run": {"ranks": 2}}
    run = recorded(toy_session(toy, "agg", **groups), tmp_path / "run")
    with pytest.raises(TrainingError, match=r"rank 1: .*only_in_the_first_rank") as caught:
        resume_run(run, trust=[module.__name__])
    assert caught.value.resume == run.path
