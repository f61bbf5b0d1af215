"""AdamW, cosine with warm-up, clipping, a learning rate for the backbone, early stopping: values, and exact resume."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from ltds.core.errors import ConfigError
from ltds.data.manifest import Manifest
from ltds.engine.loop import train
from ltds.engine.optim import build_optimizer, learning_rate, set_learning_rate
from ltds.engine.phases import schedule_phases
from ltds.engine.settings import OptimizerSettings, ScheduleSettings
from ltds.methods.base import Phase
from resuming import stop_and_resume
from toy import recorded, toy_session

ADAMW = {"name": "adamw", "lr": 0.01, "weight_decay": 0.05}
COSINE = {"epochs": 3, "steps_per_epoch": 2, "decay": "cosine", "warmup": 0.34}
OPTIONS: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": ADAMW},
    "cosine": {"schedule": COSINE},
    "clip": {"optimizer": {"clip_norm": 0.1}},
    "backbone": {"optimizer": {"backbone_lr_scale": 0.1}},
    "all": {
        "optimizer": {**ADAMW, "clip_norm": 0.1, "backbone_lr_scale": 0.1},
        "schedule": COSINE,
        "averaging": {"name": "ema", "decay": 0.5, "start": 0.2},
    },
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("method", ["agg", "crt", "daml-warmup", "epi-fcr", "ltds"])
def test_every_option_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, option: str, method: str) -> None:
    stop_and_resume(toy, tmp_path, method, 3, **OPTIONS[option])


def test_cosine_rises_in_the_warm_up_and_falls_to_zero() -> None:
    schedule = ScheduleSettings(epochs=10, steps_per_epoch=1, decay="cosine", warmup=0.2)
    (whole,) = schedule_phases((Phase(),), schedule)
    rates = [learning_rate(step, 0.3, schedule, whole) for step in range(10)]
    assert rates[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert rates[6] == pytest.approx(0.15)
    assert rates[9] == pytest.approx(0.15 * (1 + math.cos(math.pi * 7 / 8)))


def test_nesterov_needs_a_momentum_above_0() -> None:
    assert OptimizerSettings(nesterov=True, momentum=1.0).momentum == 1.0
    with pytest.raises(ValueError, match="nesterov needs a momentum above 0"):
        OptimizerSettings(nesterov=True, momentum=0.0)


def test_the_backbone_has_a_learning_rate_of_its_own(toy: Manifest) -> None:
    method = toy_session(toy, "daml").method
    optimizer = build_optimizer(method, OptimizerSettings(backbone_lr_scale=0.1))
    set_learning_rate(optimizer, 2.0)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in method.named_parameters():
        assert rates[id(parameter)] == pytest.approx(0.2 if "backbone" in name else 2.0), name


def test_clipping_bounds_the_first_step(toy: Manifest, tmp_path: Path) -> None:
    """With plain SGD the first step is lr x gradient, so its length is at most lr x clip_norm."""
    plain = {"lr": 0.5, "momentum": 0.0, "weight_decay": 0.0}
    session = toy_session(toy, optimizer={**plain, "clip_norm": 1e-3})
    before = [p.detach().clone() for p in session.method.parameters()]
    train(session, recorded(session, tmp_path / "run"), stop_after=1)
    moved = [p.detach() - b for p, b in zip(session.method.parameters(), before, strict=True)]
    assert math.sqrt(sum(float(m.square().sum()) for m in moved)) == pytest.approx(0.5e-3, rel=1e-3)


def test_adamw_decays_weights_apart_from_the_gradient(toy: Manifest) -> None:
    method = toy_session(toy).method
    optimizer = build_optimizer(method, OptimizerSettings(name="adamw", lr=0.1, weight_decay=0.5))
    weight = method.classifier.weight
    before = weight.detach().clone()
    for parameter in method.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), before * (1 - 0.1 * 0.5))


def test_patience_ends_a_phase_and_the_best_weights_are_kept(toy: Manifest, tmp_path: Path) -> None:
    long = {"schedule": {"epochs": 40, "steps_per_epoch": 2, "patience": 2}, "optimizer": {"lr": 1e-9}}
    session = toy_session(toy, **long)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    steps = [row["step"] for row in run.read_journal() if row["kind"] == "step"]
    best = run.read_metrics()["choices"]["model"]["step"]
    assert steps[-1] == best + 4 < 80, "two epochs of two steps without a better model end the run"
    assert run.done


def test_the_last_weights_can_be_kept_in_place_of_the_best(toy: Manifest, tmp_path: Path) -> None:
    steps = {}
    for keep in ("best", "last"):
        still = {"schedule": {"epochs": 6, "steps_per_epoch": 2, "keep": keep}, "optimizer": {"lr": 1e-9}}
        session = toy_session(toy, **still)
        run = recorded(session, tmp_path / keep)
        train(session, run)
        choice = run.read_metrics()["choices"]["model"]
        assert ("last" in choice["rule"]) == (keep == "last")
        steps[keep] = choice["step"]
    assert steps["best"] < steps["last"] == 12, "nothing is learned: no later epoch is better, but the last is kept"
    with pytest.raises(ConfigError, match=r"patience has no effect with schedule\.keep=last"):
        toy_session(toy, schedule={"keep": "last", "patience": 2})


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_keeping_the_last_weights_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, stop: int) -> None:
    last = {"schedule": {"epochs": 3, "steps_per_epoch": 2, "keep": "last"}, "averaging": "ema"}
    stop_and_resume(toy, tmp_path, "crt", stop, **last)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_early_stopping_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, stop: int) -> None:
    long = {"schedule": {"epochs": 20, "steps_per_epoch": 2, "patience": 2}, "optimizer": {"lr": 1e-9}}
    stop_and_resume(toy, tmp_path, "crt", stop, **long)
