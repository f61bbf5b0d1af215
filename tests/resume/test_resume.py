"""Exact resume: six steps are three, a save, a load and three more, bit for bit, however the run was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.start import resume_run
from ltds.methods.registry import METHODS
from ltds.stats.covariance import OnlineCovariance
from resuming import assert_same_outcome, journal, stop_and_resume
from toy import recorded, toy_config, toy_session


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stop", [3, 4])
def test_every_method_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, method: str, stop: int) -> None:
    stop_and_resume(toy, tmp_path, method, stop)


COVARIANCES = ["isda", "ltds", "ltds-paper", "ltds-code", "ltds-h", "ltds-i", "ltds-k", "ltds-l"]


@pytest.mark.parametrize("method", COVARIANCES)
def test_covariances_and_pairs_of_domains_resume_bit_for_bit(toy: Manifest, tmp_path: Path, method: str) -> None:
    """Three sources, so that L_S2S has pairs; stopped at step 5, when T_Sigma is past and covariances have begun."""
    stopped = stop_and_resume(toy, tmp_path, method, 5, data={"held_out": ""})
    (covariance,) = [m for m in stopped.method.modules() if isinstance(m, OnlineCovariance)]
    assert covariance.count.max() > 1


def test_lines_written_after_the_checkpoint_are_not_kept_twice(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy)
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=3)
    with run.journal_file.open("a") as stream:
        stream.write(json.dumps({"kind": "step", "step": 4, "loss": 1.0}) + '\n{"kind": "st')
    resume_run(run)
    assert [row["step"] for row in run.read_journal() if row["kind"] == "step"] == [1, 2, 3, 4, 5, 6]


SCRIPT = """
import sys
import ltds
ltds.train(resume=sys.argv[1])
"""


def test_a_run_killed_with_sigkill_resumes_bit_for_bit(toy: Manifest, tmp_path: Path) -> None:
    """The process is killed as soon as its journal shows progress past a checkpoint, wherever it is then."""
    long = {"schedule": {"epochs": 40, "steps_per_epoch": 2}}
    whole = toy_session(toy, "dc", **long)
    straight = recorded(whole, tmp_path / "straight")
    train(whole, straight)

    killed = recorded(toy_session(toy, "dc", **long), tmp_path / "killed")
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(killed.path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < deadline:
        if killed.last_checkpoint.is_file() and killed.journal_file.read_bytes().count(b'"step"') > 10:
            break
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    errors = child.communicate()[1].decode()
    assert child.returncode == -signal.SIGKILL, errors
    assert not killed.done, "it was killed too late to prove anything"
    assert len(journal(killed)) >= 5
    resume_run(killed)
    assert_same_outcome(straight, killed)


def test_a_run_repeats_itself_from_its_own_config(toy: Manifest, tmp_path: Path) -> None:
    from ltds.engine.config import resolve
    from ltds.engine.start import train_new_run

    one, two = RunDirectory(tmp_path / "one"), RunDirectory(tmp_path / "two")
    train_new_run(one, toy_config(toy, "bsce"), toy)
    train_new_run(two, resolve(one.read_config()), toy)
    assert_same_outcome(one, two)
