"""`ltds.benchmark`: the grids of the command from Python, in scripts and notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import ltds
from benchmark_workers import workers
from command_line import Command
from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.local import LocalExecutor
from ltds.core.errors import ConfigError, LtdsWarning, TrainingError
from ltds.core.processor import THREADS_CHOSEN

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

SLOW = """
import time
from ltds.methods.agg import Agg

class Slow(Agg):
    def loss(self, batch, clock):
        time.sleep(1)
        return super().loss(batch, clock)
"""
LEAVING = """
import sys
from ltds.methods.agg import Agg

class Leaving(Agg):
    def loss(self, batch, clock):
        print("it prints")
        sys.exit("no licence")
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


@pytest.mark.parametrize(("runs", "jobs", "threads"), [(1, 1, 8), (2, 2, 4), (9, 8, 1)])
def test_few_runs_share_all_cores(
    toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, jobs: int, threads: int
) -> None:
    started: list[LocalExecutor] = []

    def submit(executor: LocalExecutor, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        started.append(executor)
        return iter(())

    for name in THREADS_CHOSEN:
        monkeypatch.delenv(name, raising=False)
    for module in ("ltds.api.prepare_benchmark", "ltds.benchmarking.local"):
        monkeypatch.setattr(f"{module}.cores", lambda: 8)
    monkeypatch.setattr(LocalExecutor, "submit", submit)
    with suppress(TrainingError):  # nothing was trained
        ltds.benchmark(data=toy, methods="agg", held_out="wax", seeds=range(runs), settings=QUICK, out=tmp_path)
    assert [(executor.jobs, executor.threads) for executor in started] == [(jobs, threads)]


def test_mistakes(toy: ltds.Manifest, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Expected a grid, or arguments 'data' and 'methods'"):
        ltds.benchmark()
    with pytest.raises(ConfigError, match="only with 'ray'"):
        ltds.benchmark(data=toy, methods="agg", fetch=True)
    with pytest.raises(ConfigError, match="Expected argument 'jobs' to be a whole number of 1 or more, but got 0"):
        ltds.benchmark(data=toy, methods="agg", jobs=0)
    with pytest.raises(ConfigError, match="Expected argument 'methods' to be a name, but got the class Method"):
        ltds.benchmark(data=toy, methods=[ltds.Method])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"Expected a grid, .* but got no 'data'"):
        ltds.benchmark(methods="agg")
    with pytest.raises(ConfigError, match=r"to be a whole number of 1 or more, but got 1\.5"):
        ltds.benchmark(data=toy, methods="agg", jobs=1.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Expected argument 'settings' to be a mapping"):
        ltds.benchmark(data=toy, methods="agg", settings="a=1")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Expected argument 'grid' to be the name of a TOML file"):
        ltds.benchmark([{"data": "toy"}])  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seeds", ["0,1", True, -1, [], [0.5]])
def test_seeds_are_whole_numbers(toy: ltds.Manifest, seeds: object) -> None:
    for words in ({"seeds": seeds}, {"grid": {"seeds": seeds}}):
        with pytest.raises(ConfigError, match="Expected argument 'seeds' to be whole numbers of 0 or more, but got"):
            ltds.benchmark(data=toy, methods="agg", **words)


def test_a_mapping_may_hold_what_the_arguments_take(toy: ltds.Manifest, tmp_path: Path) -> None:
    grid = {"data": toy, "methods": "agg", "held_out": "wax", "seeds": range(1), "settings": QUICK}
    runs = ltds.benchmark(grid, out=tmp_path, jobs=np.int64(1))
    assert names(runs) == ["agg-wax-0"]
    assert runs[0].read_config()["schedule"]["steps_per_epoch"] == QUICK["schedule.steps_per_epoch"]
    with pytest.raises(ConfigError, match="Expected argument 'methods' to be a name, but got the class Method"):
        ltds.benchmark({**grid, "methods": [ltds.Method]}, out=tmp_path)


def test_an_error_in_the_callers_function_ends_the_workers(
    toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while somebody keeps the traceback, as notebooks do; the same call then continues."""
    (tmp_path / "slow_alone.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    words = {"data": toy, "held_out": "wax", "seeds": 0, "out": tmp_path / "mine", "settings": QUICK, "jobs": 2}

    def stop(line: str) -> None:
        if line.startswith("agg"):
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as kept:
        ltds.benchmark(methods=["agg", "slow_alone:Slow"], say=stop, **words)
    assert workers(os.getpid()) == []
    assert len(ltds.benchmark(methods=["agg", "slow_alone:Slow"], **words)) == 2
    assert str(kept.value) == "enough"


def test_what_own_code_prints_and_why_it_ended_reach_the_user(toy: ltds.Manifest, tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    script = (
        "import ltds\n"
        f"ltds.benchmark(methods=['leaving:Leaving', 'agg'], data={str(toy.root)!r}, held_out='wax', seeds=0,\n"
        f"               settings={QUICK!r}, jobs=1, out='mine')\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env=buffered)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("it prints") == 1
    assert "SystemExit: no licence" in done.stderr
    (failed,) = (tmp_path / "mine" / "runs").glob("leaving*")
    failure = ltds.RunDirectory(failed).failure()
    assert failure is not None
    assert "leaving.py" in failure["traceback"]


def test_torchrun_is_refused(toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "1", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="Start the program without torchrun"):
        ltds.benchmark(data=toy, methods="agg", out=tmp_path / "mine")


def test_one_trusted_module_may_stand_alone(
    toy: ltds.Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted_alone.py").write_text("from ltds.methods.agg import Agg as Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "grid.toml"
    file.write_text(f"data = {json.dumps(str(toy.root))}\nmethods = ['trusted_alone:Mine']\n")
    words = {"held_out": "wax", "seeds": 0, "settings": QUICK, "jobs": 1}
    assert len(ltds.benchmark(file, trust="trusted_alone", out=tmp_path / "mine", **words)) == 1
