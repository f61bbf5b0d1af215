"""Runs, benchmarks and reports say that the file of a user's module has changed."""

from __future__ import annotations

import hashlib
import importlib
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ltds
from command_line import QUICK, Command
from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.runner import run_cells
from ltds.core.errors import LtdsWarning
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.start import record, resume_run
from ltds.planning.series import RunSeries
from ltds.reporting.collection import collect
from toy import forget, recorded, toy_config, toy_session, trained

NAME = "their_code:Scaled"
CODE = '''
import ltds
import torch.nn.functional as F


class Scaled(ltds.Method):
    """Cross-entropy times a factor."""

    class Config(ltds.Settings):
        pass

    def loss(self, batch, clock):
        return ltds.StepLoss({factor} * F.cross_entropy(self.predict(batch.images).logits, batch.labels))
'''


class TheirFile:
    """The user's module on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, factor: str) -> str:
        """Write and load a version; returns its SHA-256."""
        text = CODE.format(factor=factor)
        self.path.write_text(text)
        if "their_code" in sys.modules:
            importlib.reload(sys.modules["their_code"])
        return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TheirFile]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # versions of one second would look the same
    (tmp_path / "theirs").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    yield TheirFile(tmp_path / "theirs" / "their_code.py")
    sys.modules.pop("their_code", None)


class Idle:
    def submit(self, cells: object) -> Iterator[GridCell]:
        return iter(())


def test_a_run_says_that_it_goes_on_with_another_version(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    first = file.write("2")
    same, other, old = (trained(toy, tmp_path / name, NAME, stop_after=3) for name in ("same", "other", "old"))
    assert same.read_environment()["code"] == {"their_code": first}
    forget(old, "code")
    with warnings.catch_warnings():
        warnings.simplefilter("error", LtdsWarning)
        ltds.train(resume=same.path, trust="their_code")
        second = file.write("30")
        resume_run(old, trust=["their_code"])
    with pytest.warns(LtdsWarning, match=r"another version of the module 'their_code'.* in another folder"):
        resume_run(other, trust=["their_code"])
    environment = other.read_environment()
    assert environment["code"] == {"their_code": first}
    assert environment["resumed"][0]["code"] == {"their_code": second}
    (said,) = [text for text in collect([other.path]).problems if "versions" in text]
    assert f"{first[:6]}, then {second[:6]} for {NAME} (1 run)" in said


def test_an_edit_counts_when_it_is_loaded(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    first = file.write("2")
    trained(toy, tmp_path / "a", NAME)
    file.path.write_text("not Python")
    assert trained(toy, tmp_path / "b", NAME).read_environment()["code"] == {"their_code": first}


def test_a_benchmark_says_that_its_runs_have_another_version(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    file.write("2")
    runs = [trained(toy, tmp_path / str(seed), NAME, seed=seed) for seed in (0, 1)]
    cells = [GridCell(run, toy_config(toy, NAME, run={"seed": seed}), "") for seed, run in enumerate(runs)]
    cells.append(replace(cells[0], run=RunDirectory(tmp_path / "new")))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LtdsWarning)
        list(run_cells(cells, Idle(), tmp_path))
    file.write("30")
    with pytest.warns(LtdsWarning, match=r"has 2 runs with another version of the module 'their_code'.*another folder"):
        list(run_cells(cells, Idle(), tmp_path))


def test_a_series_says_that_its_runs_have_another_version(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    file.write("2")
    series = RunSeries.create(tmp_path / "series", toy_config(toy, NAME), ["wax"], toy)
    series.train(toy)
    shutil.rmtree(series.run("final").path)
    file.write("30")
    with pytest.warns(LtdsWarning, match=r"series' has 1 run with another version of the module 'their_code'"):
        series.train(toy)


def test_a_report_names_the_versions_that_it_compares(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    first = file.write("2")
    runs = [trained(toy, tmp_path / "runs" / str(seed), NAME, seed=seed) for seed in (0, 1)]
    assert collect([tmp_path / "runs"]).problems == ()
    second = file.write("30")
    runs.append(trained(toy, tmp_path / "runs" / "2", NAME, seed=2))
    found = collect([tmp_path / "runs"])
    (dataset,) = found.datasets
    assert {label: len(members) for label, members in dataset.rows.items()} == {NAME: 3}
    versions = f"'their_code': {first[:6]} for {NAME} (2 runs); {second[:6]} for {NAME} (1 run)."
    assert [text for text in found.problems if versions in text] == list(found.problems)
    forget(runs[2], "code")
    assert collect([tmp_path / "runs"]).problems == (), "it may be the same version"


def test_a_first_phase_of_other_code_is_trained_again(toy: Manifest, tmp_path: Path, file: TheirFile) -> None:
    text = "from ltds.nn.small import TinyNet\n\n\ndef net():\n    return TinyNet()\n"
    file.path.write_text(text)
    own_network = {"backbone": {"name": "their_code:net"}}
    agg = recorded(session := toy_session(toy, **own_network), tmp_path / "agg")
    train(session, agg)
    adopted, alone = RunDirectory(tmp_path / "adopted"), RunDirectory(tmp_path / "alone")
    record(adopted, toy_session(toy, "crt", **own_network), agg)
    assert "first_phase" in adopted.read_environment()
    file.path.write_text(f"{text}# edited\n")
    importlib.reload(sys.modules["their_code"])
    record(alone, toy_session(toy, "crt", **own_network), agg)
    assert "first_phase" not in alone.read_environment()


def test_the_commands_say_it(toy: Manifest, tmp_path: Path, file: TheirFile, command: Command) -> None:
    words = ["--data", str(toy.root), "--held-out", "wax", "--methods", NAME, "--jobs", "1", "--out", "bench", *QUICK]
    file.write("2")
    assert "another version" not in command("benchmark", *words, "--seeds", "0").stderr
    file.write("30")
    done = command("benchmark", *words, "--seeds", "0,1")
    assert done.returncode == 0, done.stderr
    assert "ltds: 'bench' has 1 run with another version of the module 'their_code'" in done.stderr
    assert "different versions of the module 'their_code'" in command("report", "bench").stderr
