"""Averaged weights: their values, that they are what is validated and kept, and that they resume bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.agree import restored_in_all
from ltds.engine.averaging import statistics_of
from ltds.engine.checkpoint import TrainState
from ltds.engine.loop import train
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.problem import Problem
from ltds.stats import Statistics
from resuming import stop_and_resume
from toy import recorded, toy_session

EMA = {"name": "ema", "decay": 0.7, "start": 0.3}


def tensors(file: Path, prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in load_file(file).items() if k.startswith(prefix)}


def test_the_average_is_the_recursion_over_the_weights_of_every_step(toy: Manifest, tmp_path: Path) -> None:
    """Six steps, so the average starts with the weights after step 3 (from 1): ceil(.3 x 6) = 2 steps are left out."""
    weights = []
    for stop in range(1, 7):
        session = toy_session(toy, averaging=EMA, run={"checkpoint_every": 1})
        run = recorded(session, tmp_path / str(stop))
        train(session, run, stop_after=stop)
        weights.append(tensors(run.last_checkpoint, "method."))
    assert not tensors(tmp_path / "2" / "checkpoints" / "last.safetensors", "average.")
    average = tensors(tmp_path / "6" / "checkpoints" / "last.safetensors", "average.")
    assert average.keys() == weights[0].keys()
    for name, value in average.items():
        expected = weights[2][name].double()
        for later in weights[3:]:
            expected = 0.7 * expected + 0.3 * later[name].double() if value.is_floating_point() else later[name]
        torch.testing.assert_close(value.double(), expected.double(), rtol=1e-5, atol=1e-6)


def test_a_rank_takes_over_weights_optimizer_and_average_of_the_first(toy: Manifest, tmp_path: Path) -> None:
    sent: dict[str, Any] = {}

    def told_by_first(text: str) -> str:
        return str(sent.setdefault("state", text))

    def tensors_of_first(tensors: dict[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
        return dict(sent.setdefault("tensors", tensors))

    first, other = (toy_session(toy, averaging={**EMA, "start": 0.0}, run={"seed": seed}) for seed in (0, 1))
    train(first, recorded(first, tmp_path / "run"), stop_after=3)
    for session, leads in ((first, True), (other, False)):
        ranks: Any = SimpleNamespace(
            alone=False, first=leads, told_by_first=told_by_first, tensors_of_first=tensors_of_first
        )
        state = restored_in_all(replace(session, ranks=ranks), lambda: TrainState(3, 0.5, 2))
        assert state == TrainState(3, 0.5, 2)
    for one, two in (
        (first.method.state_dict(), other.method.state_dict()),
        (first.average.tensors, other.average.tensors),
    ):
        assert one
        assert one.keys() == two.keys()
        assert all(torch.equal(value, two[name]) for name, value in one.items())
    for mine, theirs in zip(first.method.parameters(), other.method.parameters(), strict=True):
        momentum = first.optimizer.state[mine]["momentum_buffer"]
        assert torch.equal(momentum, other.optimizer.state[theirs]["momentum_buffer"])


def test_the_average_is_validated_and_kept_and_the_raw_weights_go_on(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, averaging={**EMA, "start": 0.0})
    run = recorded(session, tmp_path / "run")
    plain = recorded(toy_session(toy), tmp_path / "plain")
    train(session, run)
    train(toy_session(toy), plain)
    raw, averaged = tensors(run.last_checkpoint, "method."), tensors(run.last_checkpoint, "average.")
    for name, value in tensors(plain.last_checkpoint, "method.").items():
        assert torch.equal(value, raw[name]), f"averaging changed training itself: {name}"
    step = run.read_metrics()["choices"]["model"]["step"]
    if step == 6:
        kept = tensors(run.best_checkpoint, "method.")
        assert all(torch.equal(kept[name], averaged[name]) for name in kept)
    short = toy_session(toy, averaging={**EMA, "start": 0.0})
    part = recorded(short, tmp_path / "short")
    train(short, part, stop_after=2)
    kept, average = tensors(part.best_checkpoint, "method."), tensors(part.last_checkpoint, "average.")
    assert all(torch.equal(kept[name], average[name]) for name in kept), "the first best model is the average"
    assert any(not torch.equal(kept[name], raw[name]) for name in kept)


@pytest.mark.parametrize("method", ["agg", "crt", "daml-warmup", "ltds", "tau-norm"])
@pytest.mark.parametrize("stop", [3, 4, 5])
def test_averaged_runs_resume_bit_for_bit(toy: Manifest, tmp_path: Path, method: str, stop: int) -> None:
    stop_and_resume(toy, tmp_path, method, stop, averaging=EMA)


@pytest.mark.parametrize(
    "averaging", [{**EMA, "start": 0.0}, {"name": "swad", "start_patience": 1, "tolerance": 9.0}], ids=["ema", "swad"]
)
def test_prototypes_and_covariances_are_copied_not_averaged(
    toy: Manifest, tmp_path: Path, averaging: dict[str, Any]
) -> None:
    session = toy_session(toy, "ltds", averaging=averaging, method={"covariance_start": 0.0})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    raw, part = tensors(run.last_checkpoint, "method."), "window/" if averaging["name"] == "swad" else ""
    average = tensors(run.last_checkpoint, f"average.{part}")
    copied = statistics_of(session.method)
    assert {name.rpartition(".")[2] for name in copied} == {"value", "present", "count", "mean", "sigma"}
    assert raw["augmentation.covariance.count"].sum() > 0
    assert all(torch.equal(average[name], raw[name]) for name in copied)
    floats = [name for name, value in raw.items() if value.is_floating_point() and name not in copied]
    assert not [name for name in floats if torch.equal(average[name], raw[name])], "weights and BatchNorm are averaged"


class Remembers(Agg):
    """Keeps a number of its own about the training images, beside one that is a weight to the engine."""

    def __init__(self, config: AggConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.own = Statistics()
        self.own.register_buffer("images", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        self.own.images += len(batch)
        self.weight += len(batch)
        return super().loss(batch, clock)


def test_so_is_what_a_method_from_outside_knows_of_training_images(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, f"{__name__}:Remembers", averaging={**EMA, "start": 0.0})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    raw, average = (tensors(run.last_checkpoint, prefix) for prefix in ("method.", "average."))
    assert average["own.images"] == raw["own.images"] == raw["weight"] > average["weight"]


@pytest.mark.parametrize("method", ["ltds", "ltds-code", "isda", "mldg"])
def test_predictions_do_not_depend_on_what_is_copied(toy: Manifest, method: str) -> None:
    session = toy_session(toy, method)
    images, state = session.batch(0).images, session.method.eval().state_dict()
    with torch.no_grad():
        before = session.method.predict(images).logits
        for name in statistics_of(session.method):
            state[name].fill_(1)
        assert torch.equal(session.method.predict(images).logits, before)
