"""Commands that need no network do not wait for torch to load, and those that do not train not for its compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Command, refused
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from toy import recorded, toy_session

# Several commands in one process, which saves starting Python for each.
CODE = """
import json, sys
from ltds.cli.main import run
loading = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["ltds", *words]
    try:
        run()
    except SystemExit as stop:
        assert not stop.code, (words, stop.code)
    if MODULE in sys.modules:
        loading.append(words[0])
print(json.dumps(loading))
"""


@pytest.fixture(scope="module")
def folder(toy: Manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in the folder of a benchmark."""
    root = tmp_path_factory.mktemp("benchmark")
    session = toy_session(toy, "agg")
    train(session, recorded(session, root / "runs" / "first"))
    cell = {"run": "first", "method": "agg", "held_out": "wax", "seed": 0}
    (root / "cells.json").write_text(json.dumps([cell]))
    return root


def test_the_status_is_shown_alone(command: Command, folder: Path) -> None:
    status = ["benchmark", "--status", str(folder)]
    assert command(*status).returncode == 0
    said = "Expected --status alone, but got GRID and --plan and --jobs with it."
    refused(command(*status, "grid.toml", "--jobs", "2", "--plan"), said)
    refused(command(*status, "--cpus", "1"), "but got --cpus with it")  # also at its default


def test_commands_that_need_no_network_do_not_load_torch(folder: Path) -> None:
    run = str(folder / "runs" / "first")
    commands = [
        ["--help"],
        ["train", "--help"],
        ["methods"],
        ["methods", "--paper", "1"],
        ["evaluate", run],
        ["report", run, "--out", str(folder / "report.html"), "--figures", str(folder / "figures")],
        ["benchmark", "--status", str(folder)],
    ]
    assert that_load("torch", commands, folder) == []
    assert (folder / "report.html").stat().st_size > 10_000


def test_a_prediction_does_not_load_the_compiler(toy: Manifest, folder: Path) -> None:
    """It takes half as long to load as torch itself."""
    run = str(folder / "runs" / "first")
    image = str(next((toy.root / "images").rglob("*.png")))
    assert that_load("torch._dynamo", [["predict", run, image]], folder) == []


def that_load(module: str, commands: list[list[str]], cwd: Path) -> list[str]:
    """The first words of the commands after which the module is loaded, when all are run in turn."""
    code = f"MODULE = {module!r}\n{CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)], capture_output=True, text=True, timeout=240, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    loading: list[str] = json.loads(done.stdout.splitlines()[-1])
    return loading
