"""Figures as files, and event files for TensorBoard, at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import QUICK, Command
from ltds.data.manifest import Manifest
from ltds.engine import tensorboard


def test_a_run_with_events_and_its_figures(toy: Manifest, tmp_path: Path, command: Command) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra 'tensorboard'")
    data = [str(toy.root), "--method", "ltds", "--held-out", "wax", "--set", "run.frechet_every=1"]
    done = command("train", *data, *QUICK, "--tensorboard", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "run").glob("events.out.tfevents.*"))) == 1
    done = command("report", "run", "--figures", "figures", "--figure-format", "svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [file.name.partition("-")[2] for file in sorted((tmp_path / "figures").glob("*.svg"))]
    assert "reliability.svg" in names
    assert "known-and-open-images.svg" in names
    assert "distance-between-source-domains-over-training.svg" in names
    assert "nearest-images-in-the-semantic-space-of-ltds.svg" in names
    assert len((tmp_path / "figures" / "captions.txt").read_text().splitlines()) == len(names)
    assert f"Wrote {len(names)} figures" in done.stderr


def test_an_unknown_format_is_refused(tmp_path: Path, command: Command) -> None:
    done = command("report", "run", "--figures", "figures", "--figure-format", "gif", cwd=tmp_path)
    assert done.returncode == 2
    assert "Expected figure_format to be png, svg, pdf, but got 'gif'" in done.stderr


@pytest.mark.parametrize("verb", [["train", "--out", "x"], ["benchmark", "--out", "x"]])
def test_events_without_the_package_are_refused_at_once(
    toy: Manifest,
    tmp_path: Path,
    command: Command,
    verb: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tensorboard, "find_spec", lambda name: None)
    what = [str(toy.root), "--method"] if verb[0] == "train" else ["--data", str(toy.root), "--methods"]
    done = command(*verb, *what, "agg", "--held-out", "wax", *QUICK, "--tensorboard", cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'ltds[tensorboard]'" in done.stderr
    assert not (tmp_path / "x").exists()
