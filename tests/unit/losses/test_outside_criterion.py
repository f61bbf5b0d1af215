"""A criterion from outside the package: named in the settings, built, trained with, and refused where it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import outside_losses
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig, resolve
from ltds.engine.identity import identity
from ltds.engine.loop import train
from ltds.losses import Criterion, CriterionSettings
from toy import recorded, toy_config, toy_session

COUNTS = [[4, 2, 1], [9, 1, 3]]
LOGITS = torch.tensor([[1.0, -1.0, 0.5], [0.0, 2.0, -2.0]])
LABELS, DOMAINS = torch.tensor([2, 0]), torch.tensor([0, 1])


def criterion(name: str, counts: Any = COUNTS, **settings: Any) -> Criterion:
    task = Task("t", ("a", "b", "c"), ("d0", "d1"), None, np.asarray(counts))
    return Criterion(CriterionSettings(name=f"outside_losses:{name}", **settings), task)


def test_a_function_is_called_as_it_is() -> None:
    wanted = outside_losses.focal(LOGITS, LABELS, DOMAINS, None)
    assert_close(criterion("focal")(LOGITS, LABELS, DOMAINS), wanted, rtol=0, atol=0)


def test_a_class_gets_counts_and_the_settings_that_it_names() -> None:
    plain = F.cross_entropy(LOGITS, LABELS, reduction="none")
    loss = criterion("WeightedLoss", tau=0.5)(LOGITS, LABELS, DOMAINS)
    assert_close(loss, plain / torch.tensor([1.0, 3.0]))


def test_a_class_has_its_own_settings() -> None:
    plain = F.cross_entropy(LOGITS, LABELS, reduction="none")
    assert_close(criterion("ScaledLoss", alpha=0.5)(LOGITS, LABELS, DOMAINS), 0.5 * plain)
    assert_close(criterion("ScaledLoss")(LOGITS, LABELS, DOMAINS), plain)


def test_own_settings_are_stored_and_decide_the_identity(toy: Manifest) -> None:
    def config(**settings: float) -> RunConfig:
        return toy_config(toy, method={"criterion": {"name": "outside_losses:ScaledLoss", **settings}})

    stored = config(alpha=0.5).to_dict()
    assert stored["method"]["criterion"]["alpha"] == 0.5
    assert resolve(stored) == config(alpha=0.5)
    assert identity(config(alpha=0.5), toy) != identity(config(), toy) == identity(config(alpha=1.0), toy)


@pytest.mark.parametrize("name", ["focal", "WeightedLoss"])
def test_it_trains_by_its_name_alone(toy: Manifest, tmp_path: Path, name: str) -> None:
    session = toy_session(toy, method={"criterion": f"outside_losses:{name}"})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    losses = [row["loss"] for row in run.read_journal() if "loss" in row]
    plain = toy_session(toy, method={"criterion": "ce"})
    other = recorded(plain, tmp_path / "other")
    train(plain, other)
    assert len(losses) == session.steps
    assert np.isfinite(losses).all()
    assert losses[0] < next(row["loss"] for row in other.read_journal() if "loss" in row)  # both weigh by less than 1


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("focal", {"tau": 2.0}, "tau has no effect with criterion 'outside_losses:focal', only with adjusted"),
        ("WeightedLoss", {"gamma": 0.5}, "gamma has no effect with criterion 'outside_losses:WeightedLoss'"),
        ("focal", {"alpha": 2.0}, r"criterion 'outside_losses:focal' has no setting 'alpha'\. Choices: \(none\)"),
        ("ScaledLoss", {"alpah": 2.0}, r"no setting 'alpah'\. Did you mean 'alpha'\? Choices: alpha, floor"),
        ("ScaledLoss", {"alpha": 0.0}, "greater than 0"),
        (
            "ScaledLoss",
            {"gamma": 0.5},
            "gamma has no effect with criterion 'outside_losses:ScaledLoss', only with equal",
        ),
        ("NoSettings", {}, r"Config of 'outside_losses:NoSettings' to be a subclass of ltds\.Settings, but got"),
        ("TakenName", {}, "without a setting called 'name'"),
        ("NoLoss", {}, "to be a function or a subclass of ltds.losses.ClassificationLoss, but got"),
        ("NeedsMore", {}, "missing 1 required keyword-only argument: 'alpha'"),
        ("two_arguments", {}, r"a function \(logits, labels, domains, generator\), but got 'too many positional"),
        ("nothing", {}, "to name a criterion that can be imported"),
    ],
)
def test_what_cannot_be_built_is_said(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):  # of the settings, or of the criterion that is built with them
        criterion(name, **settings)


def test_counts_that_it_needs_are_asked_for() -> None:
    with pytest.raises(ConfigError, match="no training images in 'd1'"):
        criterion("WeightedLoss", counts=[[4, 2, 1], [0, 0, 0]])


def test_a_mean_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one loss per sample, \(2,\), but got \(\)"):
        criterion("mean_loss")(LOGITS, LABELS, DOMAINS)


def test_an_array_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one loss per sample, \(2,\), but got a ndarray\. .* as a tensor"):
        criterion("array")(LOGITS, LABELS, DOMAINS)
