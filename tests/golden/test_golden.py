"""Thirty steps of every method, against the journal in the repository. `make golden` rewrites it, on purpose only."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ltds.core.rng import numpy_generator
from ltds.core.types import Batch
from ltds.data.inputs import Rows
from ltds.data.manifest import Manifest
from ltds.engine.fitting import fit_in_training
from ltds.engine.journal import Journal
from ltds.engine.loop import take_step
from ltds.engine.phases import freeze, start_phase
from ltds.engine.step_numbers import StepNumbers
from ltds.methods.registry import METHODS
from toy import recorded, toy_session

JOURNALS = Path(__file__).parent / "journals"
LENGTH = {"epochs": 3, "steps_per_epoch": 10}


def plain_images(batch: Batch, step: int) -> Batch:
    """The batch with float64 noise for images, its mean told by the label."""
    noise = numpy_generator(0, "golden/images", step).standard_normal((len(batch), 3, 16, 16))
    return replace(batch, images=torch.as_tensor(noise) + 0.3 * batch.labels[:, None, None, None])


class PlainInputs:
    """The same for whole splits: noise for each row, its mean told by the label."""

    def __init__(self, manifest: Manifest) -> None:
        self.labels, self.checksum = manifest.labels, manifest.checksum

    def evaluation(self, rows: Rows) -> Tensor:
        noise = [numpy_generator(0, "golden/rows", row).standard_normal((3, 16, 16)) for row in rows.tolist()]
        return torch.as_tensor(np.array(noise)) + 0.3 * torch.from_numpy(self.labels[rows])[:, None, None, None]


def plain_weights(method: nn.Module) -> None:
    """Float64 weights that do not depend on how a processor's kernels draw normal numbers."""
    method.double()
    for i, parameter in enumerate(method.parameters()):
        if parameter.ndim > 1:
            drawn = numpy_generator(0, "golden/weights", i).uniform(-1, 1, parameter.shape)
            parameter.data.copy_(torch.as_tensor(drawn) / math.sqrt(parameter[0].numel()))


@pytest.mark.parametrize("method", METHODS)
def test_thirty_steps_are_as_they_were(toy: Manifest, tmp_path: Path, method: str) -> None:
    """In float64 from weights and images of our own: BatchNorm over a few rows makes much of a processor's rounding."""
    session = toy_session(toy, method, schedule=LENGTH, optimizer={"lr": 0.02})
    session = replace(session, inputs=PlainInputs(toy))
    plain_weights(session.method)
    run = recorded(session, tmp_path / "run")
    with Journal(run, 0) as journal:
        for step in range(session.steps):
            scheduled = session.phase_at(step)
            if step == scheduled.start:
                if step > 0:
                    start_phase(scheduled, session.method, session.optimizer, seed=0)
                freeze(session.method, scheduled.phase, session.learnable)
            fit_in_training(session, step)
            take_step(session, plain_images(session.batch(step), step), step, StepNumbers(journal))
    rows = [{"step": r["step"], "lr": r["lr"], "loss": r["loss"], **r["terms"]} for r in run.read_journal()]
    file = JOURNALS / f"{method}.json"
    if os.environ.get("LTDS_REWRITE_GOLDEN"):
        file.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        pytest.skip(f"rewrote {file.name}; say why under Numerics in CHANGELOG.md")
    golden = json.loads(file.read_text())
    assert len(golden) == len(rows) == session.steps >= 30
    for mine, old in zip(rows, golden, strict=True):
        assert mine == pytest.approx(old, rel=1e-6)


def test_no_journal_without_its_method() -> None:
    assert {file.stem for file in JOURNALS.glob("*.json")} == set(METHODS)
