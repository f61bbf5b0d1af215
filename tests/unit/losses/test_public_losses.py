"""The public face: every name exists, and the losses work in a plain training loop without settings or a task."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import ltds.losses
import ltds.nn
import ltds.stats

COUNTS = [[90, 9, 1], [1, 0, 9]]


@pytest.mark.parametrize("package", [ltds.losses, ltds.stats, ltds.nn])
def test_public_names_exist_once(package):
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)


def test_the_paper_s_loss_is_its_equation():
    loss = ltds.losses.DistributionCalibratedLoss(COUNTS)
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    labels, domains = torch.tensor([1, 2]), torch.tensor([0, 1])
    n = torch.tensor(COUNTS, dtype=torch.float32)[domains] * logits.exp()
    assert_close(loss(logits, labels, domains), -(n[[0, 1], labels] / n.sum(1)).log())
    assert loss.state_dict() == {}  # counts come from the data, not from a checkpoint


@pytest.mark.parametrize("name", ["PlainCrossEntropy", "BalancedSoftmaxLoss", "LogitAdjustedLoss", "EqualizedLoss"])
def test_a_plain_loop_learns(name):
    options = {"rare_share": 0.3} if name == "EqualizedLoss" else {}
    loss = getattr(ltds.losses, name)(torch.tensor([[4, 4, 4], [4, 4, 1]]), **options)
    generator = torch.Generator().manual_seed(0)
    labels, domains = torch.arange(24) % 3, torch.arange(24) % 2
    features = torch.eye(3)[labels] + 0.1 * torch.randn(24, 3, generator=generator)
    model = nn.Linear(3, 3)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(50):
        optimizer.zero_grad()
        loss(model(features), labels, domains, generator).mean().backward()
        optimizer.step()
    assert (model(features).argmax(1) == labels).all()
