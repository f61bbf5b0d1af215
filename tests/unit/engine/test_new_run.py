"""What a new run is refused for, and that runs of before such a rule can be resumed and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ltds.benchmark.grid import Grid, cells_of
from ltds.core.errors import ConfigError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.start import create_run, resume_run
from ltds.planning.begin import begin_run
from toy import recorded, toy_config, toy_session

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "fixed backbone": (
        {"optimizer": {"backbone_lr_scale": 0.0}},
        r"backbone_lr_scale to be above 0, .* set backbone\.frozen=4; .* backbone\.batchnorm=fixed",
    ),
    "last weights of swad": (
        {"averaging": "swad", "schedule": {"keep": "last"}},
        r"Expected schedule\.keep=best with averaging\.name=swad, .* but got 'last'",
    ),
    "frozen stages mixed": (
        {
            "method": {"mixstyle": {"p": 0.5, "stages": [1]}},
            "backbone": {"name": "resnet10", "weights": "resnet10.pth", "frozen": 1},
        },
        r"method\.mixstyle\.stages to be stages that learn, from 2 on with backbone\.frozen=1",
    ),
}


@pytest.mark.parametrize(("settings", "message"), REFUSED.values(), ids=list(REFUSED))
def test_new_runs_are_refused_before_anything_is_written(
    toy: Manifest, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(ConfigError, match=message):
        create_run(run, toy_config(toy, **settings), toy)
    with pytest.raises(ConfigError, match=message):
        begin_run(run.path, toy, [toy_config(toy, **settings).to_dict()])
    with pytest.raises(ConfigError, match=message):
        cells_of(Grid(data="toy", methods=("agg",), settings=settings), run.path, lambda _: toy)
    assert not run.path.exists()


def test_runs_of_before_are_resumed_and_loaded(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, optimizer={"backbone_lr_scale": 0.0}, schedule={"epochs": 2, "steps_per_epoch": 1})
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=1)
    resume_run(run)
    assert load_model(run.path).classes == toy.classes
