"""Eq. (9): values, leaves, graphs, clipping, and whose running statistics move."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1)).double()


def loss_of(module, x, weights=None):
    out = module(x) if weights is None else call_with(module, weights, x, update_statistics=False)
    return (out - x.sum(1, keepdim=True)).square().mean()


def test_one_step_is_sgd():
    net, x = model(), torch.randn(6, 3).double()
    theta = dict(net.named_parameters())
    fast = fast_weights(theta, gradients(loss_of(net, x), theta), 0.2)
    again = model()
    sgd = torch.optim.SGD(again.parameters(), lr=0.2)
    loss_of(again, x).backward()
    sgd.step()
    for name, value in again.named_parameters():
        assert_close(fast[name], value.detach(), rtol=0, atol=1e-15, check_stride=False)
    assert not torch.equal(theta["0.weight"], fast["0.weight"])  # theta itself did not move


def test_first_order_passes_the_gradient_at_the_fast_weights_on():
    net, x, y = model(), torch.randn(6, 3).double(), torch.randn(6, 3).double()
    theta = dict(net.named_parameters())
    fast = fast_weights(theta, gradients(loss_of(net, x), theta), 0.2)
    at_fast = gradients(loss_of(net, y, fast), fast)
    again = fast_weights(theta, gradients(loss_of(net, x), theta), 0.2)
    for got, wanted in zip(gradients(loss_of(net, y, again), theta), at_fast, strict=True):
        assert_close(got, wanted, rtol=0, atol=0)


def test_call_with_is_the_module_with_other_weights():
    net, other, x = model(), model(), torch.randn(6, 3).double()
    nn.init.normal_(other[0].weight)
    assert_close(call_with(net, dict(other.named_parameters()), x), other(x), rtol=0, atol=0)


@pytest.mark.parametrize("clip", ["none", "global", "per_tensor"])
def test_second_order_is_the_derivative_of_the_whole(clip):
    """The gradient through the inner step against central differences, on a smooth float64 network."""
    net, x, y = model(), torch.randn(6, 3).double(), torch.randn(6, 3).double()
    theta = dict(net.named_parameters())

    def total():
        train = loss_of(net, x, theta)
        inner = gradients(train, theta, second_order=True)
        fast = fast_weights(theta, inner, 0.2, clip=clip, clip_norm=0.3)
        return train + 0.3 * loss_of(net, y, fast)

    exact = gradients(total(), theta)
    for parameter, gradient in zip(theta.values(), exact, strict=True):
        flat = parameter.data.view(-1)
        for i in range(0, len(flat), 3):
            values = []
            for h in (1e-5, -2e-5):
                flat[i] += h
                values.append(total().item())
            flat[i] += 1e-5
            assert gradient.view(-1)[i].item() == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-7)


def test_without_inner_rate_both_orders_coincide():
    net, x, y = model(), torch.randn(6, 3).double(), torch.randn(6, 3).double()
    theta = dict(net.named_parameters())
    train = loss_of(net, x)
    grads = gradients(train, theta, second_order=True)
    slow = fast_weights(theta, grads, 0.0)
    second = gradients(train + 0.3 * loss_of(net, y, slow), theta)
    quick = fast_weights(theta, [g.detach() for g in grads], 0.0)
    outer = gradients(loss_of(net, y, quick), quick)
    for a, b, c in zip(second, grads, outer, strict=True):
        assert_close(a, b + 0.3 * c, rtol=0, atol=1e-14)


def test_unused_parameters_get_zeros():
    weights = {"used": torch.ones(2, requires_grad=True), "unused": torch.ones(3, requires_grad=True)}
    grads = gradients(weights["used"].sum(), weights)
    assert grads[0].tolist() == [1, 1]
    assert grads[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("clip", ["global", "per_tensor"])
def test_small_and_zero_gradients_are_not_clipped(clip):
    theta = {"a": torch.zeros(2), "b": torch.zeros(1)}
    grads = [torch.tensor([0.3, 0.4]), torch.tensor([0.0])]
    fast = fast_weights(theta, grads, -1.0, clip=clip, clip_norm=2.0)
    assert torch.equal(fast["a"], grads[0])
    assert torch.equal(fast["b"], grads[1])


@pytest.mark.parametrize("update", [True, False])
def test_running_statistics_move_only_if_asked(update):
    net, x = model(), torch.randn(6, 3).double()
    before = {k: v.clone() for k, v in net.named_buffers()}
    expected = model()(x)  # a twin with the same weights
    out = call_with(net, dict(net.named_parameters()), x, update_statistics=update)
    assert_close(out, expected, rtol=0, atol=0)
    for name, value in net.named_buffers():
        assert torch.equal(value, before[name]) != update


def test_part():
    weights = {"e.0.weight": torch.ones(1), "e.1.bias": torch.ones(1), "encoder.bias": torch.ones(1)}
    assert list(submodule_weights(weights, "e")) == ["0.weight", "1.bias"]
