"""Values as Python programs have them: NumPy's numbers, paths, a class instead of its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import ltds
from ltds.core.errors import ConfigError

QUICK = {
    "backbone.name": "tiny",
    "data.size": np.int64(16),
    "data.batch_size": np.arange(9)[8],
    "schedule.steps_per_epoch": np.int32(2),
    "run.threads": 1,
    "run.device": "cpu",
}


def test_numbers_of_numpy_and_paths_are_taken(toy: ltds.Manifest, tmp_path: Path) -> None:
    table = tmp_path / "mine.npz"
    ltds.write_embeddings(str(table), ltds.ClassEmbeddings(toy.classes, torch.eye(len(toy.classes))))
    run = ltds.train(
        toy,
        method="agg-embeddings",
        held_out="wax",
        seed=np.int64(1),
        epochs=np.int64(1),
        out=tmp_path / "run",
        settings={**QUICK, "semantics.table": table},
    )
    config = run.read_config()
    assert (config["run"]["seed"], config["schedule"]["epochs"], config["data"]["batch_size"]) == (1, 1, 8)
    assert config["semantics"]["table"] == str(table)


def test_a_class_is_told_its_name(toy: ltds.Manifest, tmp_path: Path) -> None:
    class Mine(ltds.Method):
        pass

    with pytest.raises(ConfigError, match=r'got the class Mine\. Name it instead: "test_python_values:.*Mine"'):
        ltds.train(toy, method=Mine, out=tmp_path / "run")  # type: ignore[arg-type]
