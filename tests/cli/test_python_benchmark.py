"""`ltds.benchmark`: the grids of the command from Python, in scripts and notebooks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ltds
from command_line import Command
from ltds.core.errors import ConfigError, LtdsWarning, TrainingError

QUICK = {
    "data.size": 16,
    "data.batch_size": 8,
    "backbone.name": "tiny",
    "schedule.epochs": 2,
    "schedule.steps_per_epoch": 2,
    "run.device": "cpu",
}
FAILING = """
from ltds.methods.agg import Agg

class Failing(Agg):
    def loss(self, batch, clock):
        raise RuntimeError("it cannot be trained")
"""


def names(runs: list[ltds.RunDirectory]) -> list[str]:
    """METHOD-HELDOUT-SEED of each run."""
    return [run.path.name.rpartition("-")[0] for run in runs]


def test_a_script_needs_no_main_guard(toy: ltds.Manifest, tmp_path: Path) -> None:
    """Whatever the script does would be done again in each process that multiprocessing starts."""
    script = tmp_path / "compare.py"
    script.write_text(
        "import ltds, json\n"
        "print('once')\n"
        f"runs = ltds.benchmark(data={str(toy.root)!r}, methods=['agg', 'dc'], held_out='wax', seeds=[0], jobs=2,\n"
        f"                      out='mine', settings={QUICK!r})\n"
        "print(json.dumps([str(run.path) for run in runs]))\n"
    )
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    once, paths = done.stdout.splitlines()
    runs = [ltds.RunDirectory(tmp_path / path) for path in json.loads(paths)]
    assert (once, names(runs)) == ("once", ["agg-wax-0", "dc-wax-0"])
    assert all(run.done for run in runs)
    assert [run.read_environment()["command"] for run in runs] == ["compare.py", "compare.py"]


def test_the_command_continues_what_python_began(toy: ltds.Manifest, tmp_path: Path, command: Command) -> None:
    runs = ltds.benchmark(
        data=toy, methods="agg", held_out="wax", seeds=np.arange(1), out=tmp_path / "mine", settings=QUICK, jobs=1
    )
    assert names(runs) == ["agg-wax-0"]
    before = runs[0].metrics_file.stat().st_mtime_ns
    words = ["--data", str(toy.root), "--methods", "agg,dc", "--held-out", "wax", "--seeds", "0", "--jobs", "1"]
    settings = [f"--set={name}={value}" for name, value in QUICK.items()]
    done = command("benchmark", *words, *settings, "--out", str(tmp_path / "mine"))
    assert done.returncode == 0, done.stderr
    assert "dc held out wax seed 0" in done.stderr
    assert "agg held out wax seed 0" not in done.stderr
    assert runs[0].metrics_file.stat().st_mtime_ns == before


def test_variants_in_a_mapping_and_lines_for_each_run(toy: ltds.Manifest, tmp_path: Path) -> None:
    variants = {"slow": {}, "fast": {"optimizer": {"lr": np.float64(0.5)}}}
    grid = {"data": str(toy.root), "methods": ["agg"], "seeds": [0], "variants": variants}
    lines: list[str] = []
    runs = ltds.benchmark(grid, held_out="all", out=tmp_path, settings=QUICK, jobs=1, say=lines.append)
    assert len(runs) == 2 * len(toy.domains)
    rates = {run.read_config()["optimizer"]["lr"] for run in runs}
    assert len(rates) == 2
    assert 0.5 in rates
    ended = [line.partition(":")[0] for line in lines]
    assert {f"agg ({name}) held out {domain} seed 0" for name in ("slow", "fast") for domain in toy.domains} == set(
        ended
    )


def test_failed_runs_are_a_warning_beside_others_and_an_error_alone(
    toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_alone.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    words = {"data": toy, "held_out": "wax", "seeds": 0, "out": tmp_path / "mine", "settings": QUICK, "jobs": 1}
    with pytest.raises(TrainingError, match=r"1 failed, the first of them .*it cannot be trained.*'retry_failed'"):
        ltds.benchmark(methods="failing_alone:Failing", **words)
    with pytest.warns(LtdsWarning, match=r"Expected all 2 runs to reach their end, but 1 failed"):
        runs = ltds.benchmark(methods=["failing_alone:Failing", "agg"], **words)
    assert names(runs) == ["agg-wax-0"]


def test_a_grid_from_a_file_is_not_trusted(toy: ltds.Manifest, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f"data = {json.dumps(str(toy.root))}\nmethods = ['stranger:Method']\n")
    with pytest.raises(ConfigError, match="they name the module 'stranger'"):
        ltds.benchmark(file)


def test_mistakes(toy: ltds.Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Expected a grid, or arguments 'data' and 'methods'"):
        ltds.benchmark()
    with pytest.raises(ConfigError, match="only with 'ray'"):
        ltds.benchmark(data=toy, methods="agg", fetch=True)
    with pytest.raises(ConfigError, match="Expected argument 'jobs' to be 1 or more, but got 0"):
        ltds.benchmark(data=toy, methods="agg", jobs=0)
    with pytest.raises(ConfigError, match="Expected argument 'methods' to be a name, but got the class Method"):
        ltds.benchmark(data=toy, methods=[ltds.Method])  # type: ignore[list-item]
    assert not list(tmp_path.iterdir())
