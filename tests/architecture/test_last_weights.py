"""The last weights of a run, from its last checkpoint, are those that schedule.keep=last would have kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import benchmark_module
from safetensors.torch import load_file

from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from toy import recorded, toy_session

LAST = benchmark_module("last_weights")


@pytest.mark.parametrize("averaging", ["none", "ema"])
def test_they_are_those_of_keep_last(toy: Manifest, tmp_path: Path, averaging: str) -> None:
    runs = {}
    for keep in ("best", "last"):
        settings = {"epochs": 4, "steps_per_epoch": 2, "keep": keep}
        session = toy_session(toy, "bsce", averaging={"name": averaging}, schedule=settings)
        train(session, run := recorded(session, tmp_path / keep))
        runs[keep] = run
    kept = runs["best"].best_checkpoint.read_bytes()
    copy = LAST.with_last_weights(runs["best"], tmp_path / "copy")
    found, wanted = load_file(copy.best_checkpoint), load_file(runs["last"].best_checkpoint)
    assert found.keys() == wanted.keys()
    assert all((found[name] == wanted[name]).all() for name in wanted)
    assert copy.read_metrics()["summary"] == runs["last"].read_metrics()["summary"]
    assert runs["best"].best_checkpoint.read_bytes() == kept, "the run itself stays as it is"
