"""What every test may ask for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Before torch is loaded: in some virtual machines torch's products in bfloat16 with AMX end the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch

from command_line import Command
from ltds.cli.main import run as run_command
from ltds.data.manifest import Manifest
from toy import write_dataset

torch.set_num_threads(1)  # several tests run at once, and two threads on small tensors only get in each other's way


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """Six classes with a long tail, three domains, some pairs missing: small enough to train in a second."""
    return write_dataset(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command line in this process, which saves importing torch a hundred times."""

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
