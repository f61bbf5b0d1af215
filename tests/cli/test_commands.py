"""The command line as people use it: exit codes, sentences, what is printed where.

Real processes where the process itself matters; elsewhere the fixture `command`, because each process loads torch anew.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.main import get_command

import ltds
from command_line import PROGRAM, QUICK, Command, refused
from ltds.cli.main import app
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.methods.registry import METHODS


def process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_version_help_and_methods(tmp_path: Path) -> None:
    assert process("--version", cwd=tmp_path).stdout == f"ltds {ltds.__version__}\n"
    text = process("--help", cwd=tmp_path).stdout
    for verb in ("demo", "data", "train", "evaluate", "report", "methods"):
        assert verb in text
    listing = process("methods", cwd=tmp_path).stdout
    assert all(name in listing and entry.summary[:30] in listing for name, entry in METHODS.items())


def commands_in(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from commands_in(command) if hasattr(command, "commands") else [command]


def test_paragraphs_of_help_are_one_line() -> None:
    """Behind the first paragraph, the help keeps line breaks as the source has them, wherever they fall."""
    texts = {command.name: command.help for command in commands_in(get_command(app))}
    assert len(texts) > 15
    broken = {name for name, text in texts.items() if any("\n" in p.strip() for p in text.split("\n\n")[1:])}
    assert broken == set()


def test_train_evaluate_report(toy: Manifest, tmp_path: Path, command: Command) -> None:
    for method in ("agg", "dc"):
        words = [str(toy.root), "--method", method, "--held-out", "wax", "--out", f"runs/{method}"]
        done = command("train", *words, *QUICK, "--set", "optimizer.lr=0.05", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    run = RunDirectory(tmp_path / "runs" / "dc")
    assert run.done
    assert run.read_config()["optimizer"]["lr"] == 0.05
    before = run.metrics_file.read_bytes()
    run.metrics_file.write_text("{broken")
    assert command("evaluate", "runs/dc", cwd=tmp_path).returncode == 0
    assert run.metrics_file.read_bytes() == before
    written = ("r.html", "t.md", "t.csv", "t.tex", "t.json")
    done = command(
        "report", "runs", *(word for name in written for word in ("--out", name)), "--reference", "dc", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    acc_u = f"{100 * json.loads(before)['summary']['acc_u']:.1f}"
    for name in written:
        text = (tmp_path / name).read_text()
        assert "dc" in text, name
        assert acc_u in text, name
    assert acc_u in done.stdout
    refused(command("report", "runs", "--reference", "cd", cwd=tmp_path), "--reference", "'cd'", "dc")
    refused(command("report", "runs", "--out", "r.docx", cwd=tmp_path), ".html, .md, .csv, .tex or .json", "r.docx")


def test_an_interrupted_run_is_resumed_and_a_finished_one_left_alone(
    toy: Manifest, tmp_path: Path, command: Command
) -> None:
    words = [str(toy.root), "--held-out", "wax", "--out", "run"]
    assert command("train", *words, *QUICK, cwd=tmp_path).returncode == 0
    refused(command("train", *words, *QUICK, cwd=tmp_path), "ltds train --resume run")
    assert "finished already" in command("train", "--resume", "run", cwd=tmp_path).stderr
    (tmp_path / "run" / "DONE").unlink()
    assert command("train", "--resume", "run", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "DONE").is_file()
    repeated = command("train", "--config", "run/config.toml", "--out", "again", cwd=tmp_path)
    assert repeated.returncode == 0, repeated.stderr
    first, second = (RunDirectory(tmp_path / name) for name in ("run", "again"))
    assert first.read_metrics() == second.read_metrics()


def test_a_quiet_process_prints_results_only_and_one_that_refuses_exits_with_2(toy: Manifest, tmp_path: Path) -> None:
    done = process("-q", "train", str(toy.root), "--held-out", "wax", "--out", "run", *QUICK, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "Acc-U" in done.stdout
    refused(process("train", "--resume", "run", "--method", "dc", cwd=tmp_path), "'resume' alone", "--out FOLDER")


def test_a_fault_of_ours_exits_with_1_and_shows_the_traceback(tmp_path: Path) -> None:
    code = (
        "import ltds.methods.entry as e, ltds.cli.main as m; e.GROUPS = None; "
        "import sys; sys.argv = ['ltds', 'methods']; m.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "this is a fault in ltds" in done.stderr


def test_data_build_info_show(tmp_path: Path, command: Command) -> None:
    small = ["--set", "n_max=6", "--set", "n_min=2", "--set", "val_per_pair=1", "--set", "test_per_pair=1"]
    done = command("data", "build", "bestiary", "--out", "b", *small, "--set", "size=16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "b"
    info = command("data", "info", "b", cwd=tmp_path)
    assert "50 classes, 5 domains" in info.stdout
    assert "ratio 3.0" in info.stdout
    assert "woodblock" in info.stdout
    shown = command("data", "show", "b", "--out", "sheet.png", "--size", "16", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.height >= 50 * 16
        assert sheet.width >= 5 * 16
    with (tmp_path / "b" / "semantics" / "attributes.csv").open() as stream:
        assert len(list(csv.reader(stream))) == 51
    refused(command("data", "build", "bestiaire", cwd=tmp_path), "Did you mean 'bestiary'?")
    refused(command("data", "build", "bestiary", "--set", "sise=3", cwd=tmp_path), "Did you mean 'size'?")


def test_the_embedded_dataset_is_built_where_ltds_data_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setenv("LTDS_DATA", str(tmp_path / "made"))
    small = ["--set", "n_max=4", "--set", "n_min=2", "--set", "val_per_pair=1", "--set", "test_per_pair=1"]
    done = command("data", "build", "bestiary", *small)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "bestiary" / "manifest.json").is_file()


def test_choose_settings_for_a_domain_without_seeing_it(toy: Manifest, tmp_path: Path, command: Command) -> None:
    done = command("data", "without", str(toy.root), "wax", "--out", "without wax", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "without wax\n"
    assert "to hold out in turn: ink, oil" in done.stderr
    then = "ltds benchmark --data 'without wax' --methods agg,bsce,dc --out runs/choose"
    assert then in done.stderr.replace("\n", " ")
    words = ["--methods", "agg,dc", "--out", "runs/choose", "--jobs", "1"]
    done = command("benchmark", "--data", "without wax", *words, *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for folder in (tmp_path / "runs" / "choose" / "runs").iterdir():
        metrics = RunDirectory(folder).read_metrics()
        assert metrics["task"]["held_out"] in ("ink", "oil")
        assert metrics["summary"]["acc_u"] is not None
    refused(command("data", "without", str(toy.root), "wex", "--out", "other", cwd=tmp_path), "'wex'", "wax")
