"""MLDG, a preset of MetaLtds, against its slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ltds.core.config import merge, parse
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import mldg_reference as twin

COUNTS = np.array([[30, 5, 2], [2, 9, 4], [1, 8, 20], [3, 1, 6]])
SIZE = 5


def make(**settings: Any) -> MetaLtds:
    task = Task("t", ("a", "b", "c"), ("d0", "d1", "d2", "d3", "d4"), "d4", COUNTS)
    torch.manual_seed(1)
    config = parse(MetaLtdsConfig, merge(METHODS["mldg-scratch"].settings, settings))
    backbone = nn.Linear(twin.PIXELS, twin.D, bias=False)
    return MetaLtds(config, Problem(task=task, backbone=backbone, feature_dim=twin.D)).double().train()


def make_batch() -> tuple[Batch, list[tuple[np.ndarray, list[int]]]]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, SIZE, twin.PIXELS)), rng.integers(0, 3, (4, SIZE))
    domains = torch.arange(4).repeat_interleave(SIZE)
    batch = Batch(torch.as_tensor(x.reshape(-1, twin.PIXELS)), torch.as_tensor(y.ravel()), domains, domains)
    return batch, [(x[d], y[d].tolist()) for d in range(4)]


def flat(values: dict[str, torch.Tensor]) -> np.ndarray:
    assert set(values) == set(twin.SHAPES)
    return np.concatenate([values[name].detach().numpy().ravel() for name in twin.SHAPES])


# The original's reading, which is the preset mldg, and ours from scratch.
ORIGINAL = METHODS["mldg"].settings
READINGS = {"mldg": (ORIGINAL, (False, 0.5, 1.0)), "mldg-scratch": ({}, (True, 0.2, 1.0))}


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("reading", READINGS)
def test_a_step_is_the_slow_twin_in_second_order(step: int, reading: str) -> None:
    """Value, and numerical derivative along random directions, of L_tr(theta) + b L_te(theta - a grad L_tr(theta))."""
    settings, said = READINGS[reading]
    method, (batch, parts) = make(**settings), make_batch()
    clock = Clock(seed=0, step=step, total=10, steps_per_epoch=1)
    (held,) = method._split(clock)[1]
    loss = method.loss(batch, clock)
    loss.total.backward()
    theta = flat(dict(method.named_parameters()))
    case = (parts, held, *said)
    assert loss.total.item() == pytest.approx(float(twin.total(theta, *case)), abs=1e-12)
    got = flat({name: p.grad for name, p in method.named_parameters()})
    for seed in range(4):
        direction = np.random.default_rng(seed).normal(size=len(theta))
        assert got @ direction == pytest.approx(twin.derivative(theta, direction, *case), abs=1e-7)
    assert set(loss.terms) == {"cls", "meta_cls"}


def test_the_sum_is_the_mean_with_other_step_sizes() -> None:
    """M L + b L_te(theta - a M grad L) = M [L + (b/M) L_te(theta - (a M) grad L)], M the meta-train domains."""
    batch, _ = make_batch()
    clock = Clock(seed=0, step=0, total=10, steps_per_epoch=1)
    total = make(**ORIGINAL).loss(batch, clock).total.item()
    mean = make(inner_lr=1.5, weights={"meta_test": 1 / 3})
    assert 3 * mean.loss(batch, clock).total.item() == pytest.approx(total, abs=1e-12)


def test_first_order_differs() -> None:
    batch, _ = make_batch()
    clock = Clock(seed=0, step=0, total=10, steps_per_epoch=1)
    found = []
    for order in ("first", "second"):
        method = make(gradient_order=order)
        method.loss(batch, clock).total.backward()
        found.append(flat({name: p.grad for name, p in method.named_parameters()}))
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.parametrize("criterion", ["ce", "bsce", "dc", "adjusted"])
def test_any_criterion_and_no_embeddings(criterion: str) -> None:
    method = make(criterion=criterion)
    assert not MetaLtds.uses_embeddings(method.config)
    loss = method.loss(make_batch()[0], Clock(0, 0, 10, 1))
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in method.parameters())
