"""A model on another dataset: what is refused, and which classes it knows."""

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
    found = ltds.evaluate(run.path, data=manifest, split="test", out=tmp_path / "outcome")
    images = manifest.rows("test")
    of_fox = int((manifest.labels[images] == 5).sum())
    assert found["data"]["images"] == len(images)
    assert found["classes"]["matched"] == ["ant", "bee", "cat", "dog", "elk"]
    assert (found["classes"]["open"], found["classes"]["missing"]) == (["fox"], []), "only 'wax' has a fox to train on"
    assert (found["overall"]["known_images"], found["overall"]["open_images"]) == (len(images) - of_fox, of_fox)
