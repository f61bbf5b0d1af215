"""A method keeps the parameters and buffers that it was built with; whatever changes them is refused with its name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError, TrainingError
from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.methods.agg import Agg
from ltds.methods.base import Phase
from toy import recorded, toy_session


class Lazy(Agg):
    """Makes a layer when it first needs it."""

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        if not hasattr(self, "scale"):
            self.scale = nn.Linear(1, 1)
        return super().loss(batch, clock)


class Filled(Agg):
    """Has a buffer that is None at first."""

    bank: Tensor | None

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.register_buffer("bank", None)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        self.bank = batch.labels.float()
        return super().loss(batch, clock)


class Growing(Agg):
    """Has a buffer that becomes longer after the first step."""

    bank: Tensor

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.register_buffer("bank", torch.zeros(1, dtype=torch.int64))

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        if clock.step:
            self.bank = torch.cat([self.bank, batch.labels[:1]])
        return super().loss(batch, clock)


class Fitted(Agg):
    """Registers what it fits after training."""

    fits_after_training = True

    def fit_after_training(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        self.register_buffer("fitted", torch.ones(2))


class Replaced(Agg):
    """Gives its second phase another layer instead of other weights."""

    def phases(self) -> tuple[Phase, ...]:
        return (Phase("a", 0.5), Phase("b", 0.5, trainable=("classifier.",)))

    def start_phase(self, phase: Phase) -> None:
        self.classifier = nn.Linear(self.classifier.in_features, self.classifier.out_features)


class LazyLayer(Agg):
    """Has a layer of an unknown shape."""

    def __init__(self, config: Any, problem: Any) -> None:
        super().__init__(config, problem)
        self.scale = nn.LazyLinear(2)


class Extra(Agg):
    """Has a state that is no tensor."""

    def get_extra_state(self) -> dict[str, int]:
        return {"count": 1}


IN_TRAINING = {
    "Lazy": r"of Lazy to be the same .* got 'scale\.weight' as float32 \(1, 1\) instead of nothing.*__init__",
    "Filled": r"got 'bank' as float32 \(16,\) instead of nothing",
    "Growing": r"got 'bank' as int64 \(2,\) instead of int64 \(1,\)\. .* with their final shape, .* in place",
    "Fitted": r"got 'fitted' as float32 \(2,\) instead of nothing",
    "Replaced": r"another object for 'classifier\.weight', which the optimizer does not know .* in place",
}
BUILT = {
    "LazyLayer": r"the parameters of LazyLayer to be of a known shape, but got 'scale\.weight' without one",
    "Extra": r"the state of Extra to be tensors only, but got a dict as '_extra_state'.*register_buffer",
}


@pytest.mark.parametrize("name", IN_TRAINING)
def test_a_change_in_training_is_refused(toy: Manifest, tmp_path: Path, name: str) -> None:
    session = toy_session(toy, f"test_fixed_state:{name}", averaging={"name": "none"})
    run = recorded(session, tmp_path / "run")
    with pytest.raises(TrainingError, match=IN_TRAINING[name]):
        train(session, run)
    assert not run.done


@pytest.mark.parametrize("name", ["Lazy", "Filled"])
def test_it_is_noticed_after_the_first_step(toy: Manifest, tmp_path: Path, name: str) -> None:
    session = toy_session(toy, f"test_fixed_state:{name}", schedule={"steps_per_epoch": 50})
    run = recorded(session, tmp_path / "run")
    with pytest.raises(TrainingError, match=IN_TRAINING[name]):
        train(session, run)
    assert len(run.read_journal()) <= 1


@pytest.mark.parametrize("name", BUILT)
def test_a_state_that_no_checkpoint_can_hold_is_refused(toy: Manifest, name: str) -> None:
    with pytest.raises(ConfigError, match=BUILT[name]):
        toy_session(toy, f"test_fixed_state:{name}")
