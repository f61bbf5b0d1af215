"""`ltds doctor` and `ltds --version`: what a report of a problem should contain."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
import torch

import ltds
from command_line import Command
from ltds.cli.doctor import _places, doctor
from ltds.core.installation import Extra, extras, installed_version
from ltds.core.processor import cores, processor_name
from other_device import OtherTensor, other_device

METADATA = """Metadata-Version: 2.4
Name: ltds
Version: 9.9
Requires-Dist: numpy>=1.26
Requires-Dist: numpy>=1.26; extra == 'onnx'
Requires-Dist: no-such-package>=1; extra == "ray"
Requires-Dist: pytest; extra == 'test'
Requires-Dist: ltds[ray]; extra == 'ray'
"""


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of another ltds, found before the real one."""
    folder = tmp_path / "ltds-9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(tmp_path)


def test_version(command: Command) -> None:
    assert command("--version").stdout == f"ltds {ltds.__version__}\n"


def test_versions_devices_extras_and_places(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LTDS_DATA", str(tmp_path / "sets"))
    (tmp_path / "sets" / "one").mkdir(parents=True)
    (tmp_path / "sets" / "one" / "manifest.json").write_text("{}")
    done = command("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["Versions", "Devices", "Extras", "Places"]
    assert f"torch {installed_version('torch')}" in done.stdout
    processor = f"{processor_name()} ({torch.backends.cpu.get_cpu_capability()})"
    assert f"CPU: {processor}, {cores()} cores for this process, of {os.cpu_count()} in the machine" in done.stdout
    assert f"{tmp_path / 'sets'} (1 there; LTDS_DATA)" in done.stdout
    if not torch.cuda.is_available():
        assert "  CUDA: " in done.stdout


@pytest.mark.parametrize(
    ("has", "works", "says"),
    [(True, True, "yes; "), (False, True, "no; "), (False, False, "no: it reports AMX, but AMX fails in torch")],
)
def test_whether_bfloat16_works(
    has: bool, works: bool, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ltds.engine.precision.has_bfloat16", lambda device: has)
    monkeypatch.setattr("ltds.engine.precision.amx_works", lambda: works)
    doctor()
    assert f"bfloat16 on this CPU: {says}" in capsys.readouterr().out


@pytest.mark.usefixtures("declared")
def test_an_extra_that_is_missing_says_what_to_type(command: Command) -> None:
    assert extras() == [
        Extra("onnx", "export to ONNX", ()),
        Extra("ray", "benchmarks on a cluster", ("no-such-package",)),
    ]
    text = command("doctor").stdout
    assert "onnx  there (export to ONNX)" in text
    assert "ray   missing; to add it: pip install 'ltds[ray]' (benchmarks on a cluster)" in text


def test_a_package_that_is_not_installed() -> None:
    assert installed_version("no-such-package") is None


def test_a_gpu_is_compared_with_the_cpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with other_device():
        doctor()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "differ from those on the CPU" in line]
    assert line.endswith("of their length: as it should be")
    assert float(line.split(" by ")[1].split()[0]) < 1e-3


def test_a_gpu_that_computes_wrong_or_fails_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = torch.relu

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return right(x) * 1.02 if isinstance(x, OtherTensor) else right(x)

    def fails(x: torch.Tensor) -> torch.Tensor:
        if isinstance(x, OtherTensor):
            raise RuntimeError("no kernel image")
        return right(x)

    for relu, says in (
        (wrong, "of their length: WRONG: use another version of torch, or --device cpu"),
        (fails, "a step of training on lazy fails: RuntimeError: no kernel image. Use --device cpu."),
    ):
        monkeypatch.setattr("torch.nn.functional.relu", lambda x, inplace=False, relu=relu: relu(x))
        with other_device():
            doctor()
        assert says in capsys.readouterr().out


def test_someone_without_a_home(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `docker run -u 12345`."""

    def nobody(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for chosen in ("", "/models"):
        monkeypatch.setenv("HF_HOME", chosen) if chosen else monkeypatch.delenv("HF_HOME", raising=False)
        (encoders,) = (line for line in _places() if line.startswith("text encoders"))
        assert encoders == f"text encoders: {chosen or '~/.cache/huggingface'} (not there; HF_HOME)"
