"""A run goes on with the data that it began with, or not at all; also where no checkpoint would tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ltds.core.errors import CheckpointError
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import resolve
from ltds.engine.start import resume_run
from toy import recorded, toy_session, write_dataset


@pytest.fixture
def data(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "data")


def test_features_that_changed_before_the_first_checkpoint(data: Manifest, tmp_path: Path) -> None:
    file = tmp_path / "features.npz"

    def write(seed: int) -> None:
        values = np.random.default_rng(seed).normal(size=(len(data), 8)).astype(np.float32)
        write_features(file, values, data.paths)

    write(0)
    config = resolve(
        {
            "data": {"root": str(data.root), "held_out": "wax", "features": str(file), "batch_size": 8},
            "schedule": {"epochs": 1, "steps_per_epoch": 2},
            "run": {"threads": 1, "device": "cpu"},
            "method": {"name": "agg"},
        }
    )
    run = recorded(assemble(config, data), tmp_path / "run")
    write(1)
    with pytest.raises(CheckpointError, match=r"Expected the features that '.*run' was started with, .* others now"):
        resume_run(run)
    write(0)
    resume_run(run)
    assert run.done


def test_class_embeddings_that_changed_before_the_first_checkpoint(data: Manifest, tmp_path: Path) -> None:
    run = recorded(toy_session(data, "ltds"), tmp_path / "run")
    file = data.root / "semantics" / "attributes.csv"
    file.write_text(file.read_text().replace("fox,4,0,1", "fox,4,0,0.9"))
    with pytest.raises(CheckpointError, match=r"Expected the class embeddings that .* have changed since\. Restore"):
        resume_run(run)
    environment = run.read_environment()
    del environment["semantics"]  # a run from before this was recorded
    run.write_environment(environment)
    resume_run(run)
    assert run.done
