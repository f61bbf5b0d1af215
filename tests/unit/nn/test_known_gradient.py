"""A loss whose gradient is known: its value, its derivative, and that nothing else is touched."""

from __future__ import annotations

import torch

from ltds.nn.known_gradient import with_known_gradient


def test_value_and_gradient_are_those_given() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    value = (a.square().sum() * 5).detach()
    known = with_known_gradient(value, [a, b], [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])])
    assert known.item() == 10
    (0.5 * known + b.sum()).backward()
    assert a.grad.tolist() == [0.5, 1.0]
    assert b.grad.tolist() == [2.5, 3.0, 3.5]


def test_gradients_may_be_used_again_afterwards() -> None:
    a, g = torch.ones(2, requires_grad=True), torch.tensor([1.0, 2.0])
    with_known_gradient(torch.tensor(0.0), [a], [g]).backward()
    a.grad.mul_(7)
    assert g.tolist() == [1.0, 2.0]
