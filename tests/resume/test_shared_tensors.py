"""Methods whose tensors share memory: a layer under two names, tied weights, a buffer that is a part of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.load import load_model
from ltds.engine.loop import train
from ltds.engine.model_directory import WEIGHTS, write_weights
from ltds.engine.start import resume_run
from ltds.methods.agg import Agg
from resuming import assert_same_outcome
from toy import recorded, toy_session


class Shared(Agg):
    """Agg with all of these; the part of the queue is what the step writes to."""

    first: Tensor

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.model = nn.Sequential(self.backbone, self.classifier)
        width = problem.feature_dim
        self.there, self.back = nn.Linear(width, width), nn.Linear(width, width)
        self.back.weight = self.there.weight
        queue = torch.zeros(4, width)
        self.register_buffer("queue", queue)
        self.register_buffer("first", queue[:2])

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        features = self.backbone(batch.images)
        self.first.copy_(features[:2].detach())
        tied = (self.back(self.there(features)) - features).pow(2).mean()
        return StepLoss(super().loss(batch, clock).total + tied, {"tied": tied.detach()})


@pytest.mark.parametrize("averaging", ["none", "ema"])
def test_they_are_saved_resumed_and_loaded(toy: Manifest, tmp_path: Path, averaging: str) -> None:
    name, settings = "test_shared_tensors:Shared", {"name": averaging}
    whole, first = (toy_session(toy, name, averaging=settings) for _ in range(2))
    straight, broken = recorded(whole, tmp_path / "straight"), recorded(first, tmp_path / "broken")
    train(whole, straight)
    train(first, broken, stop_after=3)
    resume_run(broken, trust=["test_shared_tensors"])
    assert_same_outcome(straight, broken)
    model = load_model(straight.path, trust=["test_shared_tensors"])
    method = model.method
    assert method.model[1].weight is method.classifier.weight  # type: ignore[union-attr, index]
    assert torch.equal(method.queue[:2], method.first)  # type: ignore[index, arg-type]
    assert method.first.abs().sum() > 0  # type: ignore[operator, union-attr]
    write_weights(tmp_path, method, model.stored)
    assert load_file(tmp_path / WEIGHTS)["method.model.1.weight"].equal(method.classifier.weight)
