"""Thirty steps of every method, against the journal in the repository. `make golden` rewrites it, on purpose only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.methods.presets import PRESETS
from toy import recorded, toy_session

JOURNALS = Path(__file__).parent / "journals"
LENGTH = {"epochs": 3, "steps_per_epoch": 10}


@pytest.mark.parametrize("method", PRESETS)
def test_thirty_steps_are_as_they_were(toy: Manifest, tmp_path: Path, method: str) -> None:
    """Kernels of other processors round differently, so numbers agree to 1e-3, not to the last bit."""
    session = toy_session(toy, method, schedule=LENGTH, optimizer={"lr": 0.02})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    rows = [
        {"step": r["step"], "lr": r["lr"], "loss": r["loss"], **r["terms"]}
        for r in run.read_journal()
        if r["kind"] == "step"
    ]
    file = JOURNALS / f"{method}.json"
    if os.environ.get("LTDS_REWRITE_GOLDEN"):
        file.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        pytest.skip(f"rewrote {file.name}; say why under Numerics in CHANGELOG.md")
    golden = json.loads(file.read_text())
    assert len(golden) == len(rows) == 30
    for mine, old in zip(rows, golden, strict=True):
        assert mine == pytest.approx(old, rel=1e-3)


def test_no_journal_without_its_method() -> None:
    assert {file.stem for file in JOURNALS.glob("*.json")} == set(PRESETS)
