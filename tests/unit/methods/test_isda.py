"""ISDA against its slow twin, against the worked examples, and as the ancestor of L_Aug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.methods.isda import Isda, IsdaConfig
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import isda_reference as twin

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = np.array([[30, 5, 2], [2, 9, 4]])
LATE = Clock(seed=0, step=8, total=10, steps_per_epoch=1)


def make(counts: np.ndarray = COUNTS, backbone: nn.Module | None = None, feature_dim: int = 2, **settings: Any) -> Isda:
    classes = tuple(f"c{i}" for i in range(counts.shape[1]))
    task = Task("t", classes, ("d0", "d1", "d2"), "d2", counts)
    torch.manual_seed(3)
    backbone = backbone or nn.Linear(4, feature_dim, bias=False)
    torch.set_default_dtype(torch.float64)  # so that log n is exact too
    try:
        method = Isda(parse(IsdaConfig, settings), Problem(task=task, backbone=backbone, feature_dim=feature_dim))
    finally:
        torch.set_default_dtype(torch.float32)
    return method.double().train()


def make_batch(seed: int, size: int = 6, width: int = 4) -> Batch:
    rng = np.random.default_rng(seed)
    labels = torch.as_tensor(rng.integers(0, 3, 2 * size))
    domains = torch.arange(2).repeat_interleave(size)
    return Batch(torch.as_tensor(rng.normal(size=(2 * size, width))), labels, domains, torch.arange(2 * size))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("criterion", ["ce", "dc"])
def test_the_second_step_is_the_slow_twin(covariance: str, criterion: str) -> None:
    """The covariance knows both batches, this one included, and is a constant: the twin differentiates the loss."""
    method = make(covariance=covariance, criterion=criterion, strength=5.0)
    first, second = make_batch(1), make_batch(2)
    method.loss(first, LATE)
    loss = method.loss(second, LATE)
    loss.total.backward()

    A, W, b = (p.detach().numpy() for p in method.parameters())
    rows = np.concatenate([first.images.numpy(), second.images.numpy()]) @ A.T
    labels = first.labels.tolist() + second.labels.tolist()
    sigmas = [twin.covariance(rows, labels, c, covariance == "diagonal") for c in range(3)]
    shift = np.log(COUNTS[second.domains]) if criterion == "dc" else np.zeros((12, 3))

    def slow(*arrays: np.ndarray) -> Any:
        return twin.loss(*arrays, second.images.tolist(), second.labels.tolist(), shift, sigmas, 5.0 * 8 / 10)

    assert loss.total.item() == pytest.approx(float(slow(A, W, b)), abs=1e-12)
    for parameter, wanted in zip(method.parameters(), twin.gradient(slow, [A, W, b]), strict=True):
        assert_close(parameter.grad, torch.as_tensor(wanted), rtol=0, atol=1e-12)
        assert np.abs(wanted).max() > 1e-3
    assert loss.terms["augmented"].item() == loss.total.item()


def test_the_strength_grows_from_the_first_epoch() -> None:
    """lambda_0 epoch / epochs, epoch from 0: the first epoch is plain cross-entropy, later ones cost more."""
    batch = make_batch(1)
    plain = nn.functional.cross_entropy(make().predict(batch.images).logits, batch.labels).item()
    at = {step: make().loss(batch, Clock(0, step, 100, 10)).total.item() for step in (0, 9, 10, 50, 99)}
    assert at[0] == at[9] == pytest.approx(plain, abs=1e-12)
    assert at[0] < at[10] < at[50] < at[99]
    half = make(strength=7.5 / 2).loss(batch, Clock(0, 8, 10, 1)).total.item()
    assert make(strength=7.5).loss(batch, Clock(0, 4, 10, 1)).total.item() == pytest.approx(half, abs=1e-12)


def exact(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def examples() -> Any:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not beside this repository ({FILE.name})")
    return json.loads(FILE.read_text())["examples"]


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_covariance_online(examples: Any, covariance: str) -> None:
    given, wanted = examples["covariance_online"]["inputs"], examples["covariance_online"]["expected"]
    method = make(np.array([[5, 5], [5, 5]]), nn.Identity(), covariance=covariance)
    key = covariance[:4]
    for n in (1, 2):
        rows, labels = exact(given[f"batch{n}_f"]), torch.tensor(given[f"batch{n}_y"])
        method.loss(Batch(rows, labels, torch.zeros_like(labels), labels), LATE)
        assert_close(method.covariance.sigma, exact(wanted[f"{key}_after{n}"]), rtol=0, atol=1e-9)
    assert_close(method.covariance.count, exact(wanted[f"{key}_n"]))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_l_aug_plain(examples: Any, covariance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, wanted = examples["l_aug"]["inputs"], examples["l_aug"]["expected"]
    key = covariance[:4]
    method = make(np.ones((2, 4), dtype=int), nn.Identity(), covariance=covariance, strength=given["lambda"] * 10 / 8)
    monkeypatch.setattr(method.covariance, "updated", lambda features, labels: method.covariance.estimate)
    with torch.no_grad():
        method.classifier.weight.copy_(exact(given["W"]))
        method.classifier.bias.copy_(exact(given["b"]))
        method.covariance.sigma.copy_(exact(given[f"sigma_prime_{key}"]))
    labels = torch.tensor(given["labels"])
    loss = method.loss(Batch(exact(given["f"]), labels, labels * 0, labels), LATE)
    assert loss.total.item() == pytest.approx(wanted[f"plain_{key}_mean"], abs=1e-9)


def test_it_is_l_aug_of_ltds_with_one_neighbour_and_no_calibration() -> None:
    """And then LT-DS needs no embeddings: each class keeps its own covariance."""
    isda = make(strength=7.5)
    config = MetaLtdsConfig(
        weights={"z2s": 0.0, "s2s": 0.0, "s2z": 0.0, "augmentation": 1.0},
        meta_test_domains=0,
        neighbours=1,
        covariance_start=0.0,
        strength=7.5,
        calibrated_augmentation=False,
    )
    assert not MetaLtds.uses_embeddings(config)
    ltds = (
        MetaLtds(config, Problem(task=isda.task, backbone=nn.Linear(4, 2, bias=False), feature_dim=2)).double().train()
    )
    state = {name.replace("covariance", "augmentation.covariance"): value for name, value in isda.state_dict().items()}
    ltds.load_state_dict({**ltds.state_dict(), **state})
    for seed in (1, 2):
        batch = make_batch(seed)
        assert_close(ltds.loss(batch, LATE).terms["aug"], isda.loss(batch, LATE).total.detach(), rtol=0, atol=1e-12)
    assert_close(ltds.augmentation.covariance.sigma, isda.covariance.sigma, rtol=0, atol=0)


def test_the_covariance_is_saved_and_gets_no_gradient() -> None:
    method = make()
    method.loss(make_batch(1), LATE).total.backward()
    assert {"covariance.sigma", "covariance.mean", "covariance.count"} <= set(method.state_dict())
    assert not method.covariance.sigma.requires_grad
    assert method.covariance.count.sum() == 12


def test_every_setting_changes_something_and_bad_ones_are_refused() -> None:
    base = make().loss(make_batch(1), LATE).total.item()
    for change in ({"criterion": "dc"}, {"covariance": "full"}, {"strength": 2.0}):
        assert abs(make(**change).loss(make_batch(1), LATE).total.item() - base) > 1e-6
    with pytest.raises(ConfigError, match="strength"):
        make(strength=0.0)
    assert METHODS["isda"].method is Isda
    assert IsdaConfig().criterion.name == "ce"
