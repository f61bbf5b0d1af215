"""The command line, for the tests of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ltds.cli.main import run as run_command

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command line in this process, which saves importing torch forty times; test_commands.py uses real ones."""

    def call(*words: str, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["ltds", *words])
        capfd.readouterr()
        code: object = 0
        try:
            run_command()
        except SystemExit as stop:
            code = stop.code
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(words, code or 0, out, err)  # type: ignore[call-overload, no-any-return]

    return call
