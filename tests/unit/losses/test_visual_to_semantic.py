"""Eq. (3) against its slow twin, and its edges."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ltds.losses.calibrated import log_counts
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from reference import equations as eq

SPHERE = {"margin": 0.1, "temperature": 1 / 30}


def case(C=5, N=6, S=4, seed=0):
    torch.manual_seed(seed)
    return torch.rand(N, S).double(), torch.arange(N) % C, F.normalize(torch.randn(C, S).double(), dim=1)


@pytest.mark.parametrize("C", [2, 5])
@pytest.mark.parametrize("calibrated", [False, True])
def test_equals_the_slow_twin(C, calibrated):
    projected, labels, s = case(C)
    n = [3.0, 50.0, 1.0, 7.0, 200.0][:C]
    log_n = log_counts(torch.tensor(n).double()) if calibrated else None
    loss = visual_to_semantic_loss(projected, labels, s, log_n=log_n, **SPHERE)
    for i, (p, y) in enumerate(zip(projected.tolist(), labels.tolist(), strict=True)):
        twin = eq.z2s(p, y, s.tolist(), 0.1, 1 / 30, n if calibrated else None)
        assert loss[i].item() == pytest.approx(float(twin), abs=1e-11)


def test_several_tables_at_once():
    projected, labels, s = case()
    tables = torch.stack([s, s.flip(0), s.roll(1, 0)])
    log_n = torch.rand(6, 5).double()
    together = visual_to_semantic_loss(projected, labels, tables, log_n=log_n, **SPHERE)
    apart = [visual_to_semantic_loss(projected, labels, t, log_n=log_n, **SPHERE) for t in tables]
    assert_close(together, torch.stack(apart), rtol=0, atol=1e-12)


def test_zero_count_class_leaves_the_denominator():
    projected, labels, s = case(C=3, N=2)
    log_n = log_counts(torch.tensor([5.0, 5.0, 0.0]).double())
    whole = visual_to_semantic_loss(projected, labels, s, log_n=log_n, **SPHERE)
    without = visual_to_semantic_loss(projected, labels, s[:2], **SPHERE)
    assert_close(whole, without, rtol=0, atol=1e-12)


def test_gradcheck_to_second_order():
    projected, labels, s = case(N=3)
    soft = {"margin": 0.1, "temperature": 0.5}
    inputs = (projected.requires_grad_(), s.requires_grad_())
    assert torch.autograd.gradcheck(lambda p, t: visual_to_semantic_loss(p, labels, t, **soft), inputs)
    assert torch.autograd.gradgradcheck(lambda p, t: visual_to_semantic_loss(p, labels, t, **soft), inputs)


def test_dead_projection_stays_finite():
    """Every ReLU of e closed for a sample: a zero row, cosine 0 with all; first and second derivatives finite."""
    _, labels, s = case(N=2)
    raw = torch.tensor([[-1.0, -2, -1, -3], [1, 2, 0.5, -1]], dtype=torch.float64, requires_grad=True)
    loss = visual_to_semantic_loss(raw.relu(), labels, s, **SPHERE)
    assert torch.isfinite(loss).all()
    (first,) = torch.autograd.grad(loss.sum(), raw, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), raw)
    assert (first[0] == 0).all()
    assert torch.isfinite(second).all()
    assert first[1].abs().max() > 0
