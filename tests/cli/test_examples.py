"""Every example runs, and says what it says it does."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import ltds
from ltds.data.datasets.bestiary import BestiaryConfig, build

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import an example, in this process."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_own_method(tmp_path: Path) -> None:
    small = BestiaryConfig(n_max=20, n_min=4, val_per_pair=1, test_per_pair=1)
    build(tmp_path / "data" / "bestiary", small)  # found there by the example, which would build the full dataset
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "own_method.py")],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "LTDS_DATA": "data"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "'acc_u': 0." in done.stdout
    journal = (tmp_path / "runs" / "own-method" / "run" / "log.jsonl").read_text()
    assert journal.count('"focal"') == 10


def test_own_data(load: Load, tmp_path: Path) -> None:
    predictions = load("own_data").main(tmp_path)
    assert [prediction.classes[0][0] for prediction in predictions] == ["apple", "leaf", "sky"]
    assert all(prediction.label in ("apple", "leaf", "sky", "unknown") for prediction in predictions)
    assert ltds.RunDirectory(tmp_path / "run").read_task().held_out == "night"


def test_own_loss(load: Load) -> None:
    accuracies = load("own_loss").main()
    plain, calibrated = accuracies["cross-entropy"], accuracies["calibrated"]
    assert plain[0] > 0.9 > 0.5 > plain[2], "cross-entropy neglects the rare class"
    assert calibrated[2] > plain[2] + 0.3
    assert min(calibrated) > min(plain) + 0.3


def test_features(load: Load, tmp_path: Path) -> None:
    predictions = load("features").main(tmp_path)
    wanted = ["rain"] * 6 + ["traffic"] * 2 + ["voices"]
    assert sum(p.classes[0][0] == name for p, name in zip(predictions, wanted, strict=True)) >= 8
    assert ltds.RunDirectory(tmp_path / "run").read_config()["backbone"]["name"] == "adapter"


def test_sklearn_classifier(load: Load) -> None:
    recalls = load("sklearn_classifier").main()
    assert recalls["ltds"]["rare"] > recalls["logistic regression"]["rare"] + 0.2
    assert min(recalls["ltds"].values()) > 0.5


def test_every_example_has_a_test() -> None:
    text = Path(__file__).read_text()
    assert [file.name for file in EXAMPLES.glob("*.py") if f"test_{file.stem}" not in text] == []
