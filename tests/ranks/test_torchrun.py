"""`torchrun -m ltds train ...`: the ranks that torchrun starts train one run, and one of them speaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tomli_w

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.start import train_new_run
from ranked_runs import assert_close, settings
from toy import toy_config


def test_torchrun_trains_one_run_in_two_ranks(toy: Manifest, tmp_path: Path) -> None:
    config = toy_config(toy, "bsce", **settings(1))
    (tmp_path / "settings.toml").write_text(tomli_w.dumps(config.to_dict()))
    words = ["train", "--config", "settings.toml", "--out", "run"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, "-m", "ltds", *words],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Training in 'run'") == 1
    assert done.stdout.count("Held out") == 1
    run, alone = RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "alone")
    assert run.done
    assert run.read_environment()["ranks"] == 2
    train_new_run(alone, config, toy)
    assert_close(run, alone)
