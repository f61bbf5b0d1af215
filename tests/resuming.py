"""What tests of exact resume share: a run that was stopped and resumed ends like one that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.session import Session
from ltds.engine.start import resume_run
from ltds.evaluation.table import PredictionTable
from toy import recorded, toy_session


def journal(run: RunDirectory) -> list[dict[str, Any]]:
    """The journal without wall-clock seconds, which alone may differ."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in run.read_journal()]


def assert_same_outcome(one: RunDirectory, other: RunDirectory) -> None:
    assert journal(one) == journal(other)
    for name in ("last_checkpoint", "best_checkpoint"):
        assert getattr(one, name).read_bytes() == getattr(other, name).read_bytes(), name
    for split in ("val", "test"):
        mine, theirs = (PredictionTable.load(run.predictions_file(split)) for run in (one, other))
        np.testing.assert_array_equal(mine.logits, theirs.logits)
    assert one.read_metrics() == other.read_metrics()


def stop_and_resume(toy: Manifest, folder: Path, method: str, stop: int, /, **groups: dict[str, Any]) -> Session:
    """The session that stopped, after its run and one that did not stop were found to end alike."""
    whole, first = (toy_session(toy, method, **groups) for _ in range(2))
    straight, broken = recorded(whole, folder / "straight"), recorded(first, folder / "broken")
    train(whole, straight)
    train(first, broken, stop_after=stop)
    resume_run(broken)
    assert_same_outcome(straight, broken)
    return first
