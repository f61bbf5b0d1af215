"""A model on another dataset: what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ltds
from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from toy import recorded, toy_session


@pytest.mark.parametrize("provenance", [{}, {"builder": "folder", "config": {"seed": 0}}])
def test_the_training_images_are_no_other_dataset(toy: Manifest, tmp_path: Path, provenance: dict[str, object]) -> None:
    manifest = replace(toy, provenance=provenance)
    session = toy_session(manifest)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    with pytest.raises(ConfigError, match="Evaluate its test images only"):
        ltds.evaluate(run.path, data=manifest, out=tmp_path / "outcome")
    assert ltds.evaluate(run.path, data=manifest, split="test", out=tmp_path / "outcome")["data"]["images"] > 0
