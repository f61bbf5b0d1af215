"""Eq. (2) against its slow twin, and its edges."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ltds.losses.calibrated import (
    BalancedSoftmaxLoss,
    DistributionCalibratedLoss,
    PlainCrossEntropy,
    calibrated_cross_entropy,
    log_counts,
)
from reference import equations as eq


def test_equals_the_slow_twin():
    torch.manual_seed(0)
    logits, labels, domains = torch.randn(8, 5).double(), torch.tensor([0, 1, 3, 4, 0, 2, 2, 4]), torch.arange(8) % 2
    counts = torch.tensor([[9.0, 3, 7, 1, 2], [4, 5, 6, 8, 1]]).double()
    loss = calibrated_cross_entropy(logits, labels, log_counts(counts)[domains])
    for i in range(8):
        assert loss[i].item() == pytest.approx(
            eq.dc(logits[i].tolist(), labels[i], counts[domains[i]].tolist()), abs=1e-12
        )


def test_zero_count_class_has_zero_gradient_and_no_nan():
    logits = torch.tensor([[1e4, 0.0, 1.0]], requires_grad=True)
    loss = calibrated_cross_entropy(logits, torch.tensor([1]), log_counts(torch.tensor([0.0, 3.0, 4.0])))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert gradient[0, 0] == 0
    assert_close(loss.item(), eq.dc([0.0, 1.0], 0, [3.0, 4.0]), rtol=1e-6, atol=0)
    assert_close(gradient.sum().item(), 0.0)


def test_label_outside_its_domain_is_infinite():
    """A label that its domain has no images of is a mistake in the data; it must show."""
    loss = calibrated_cross_entropy(torch.zeros(1, 2), torch.tensor([0]), log_counts(torch.tensor([0.0, 3.0])))
    assert torch.isinf(loss).all()


def test_gradcheck():
    torch.manual_seed(1)
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    log_n = log_counts(torch.tensor([3.0, 0, 2, 9], dtype=torch.float64))
    labels = torch.tensor([0, 2, 3])
    assert torch.autograd.gradcheck(lambda z: calibrated_cross_entropy(z, labels, log_n), logits)
    assert_close(
        calibrated_cross_entropy(logits, labels, torch.zeros(4)), F.cross_entropy(logits, labels, reduction="none")
    )


@pytest.mark.parametrize("loss", [PlainCrossEntropy, BalancedSoftmaxLoss, DistributionCalibratedLoss])
def test_a_checkpoint_holds_no_counts(loss):
    """They are known from the task: a model can be loaded for a task with other counts."""
    built = loss([[3, 1], [2, 5]])
    assert built.log_n.shape == (2, 2)
    assert not built.state_dict()
