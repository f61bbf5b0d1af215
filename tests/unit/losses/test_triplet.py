"""The semi-hard triplet loss: by hand, against loops, and at its edges."""

from __future__ import annotations

import pytest
import torch

from ltds.losses.triplet import semihard_triplet_loss
from reference import masf_reference


def test_by_hand_on_a_line() -> None:
    """0 and 1 are of class A, 1.5 and 4 of class B: each pair takes the nearest negative beyond its positive."""
    x = torch.tensor([[0.0], [1.0], [1.5], [4.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    # (0,1): d 1, negatives 2.25 and 16 -> 2.25. (1,0): d 1, negatives .25 and 9 -> 9.
    # (1.5,4): d 6.25, negatives 2.25 and .25, none beyond -> the farthest, 2.25. (4,1.5): d 6.25, negatives 16, 9 -> 9.
    margin = 3.0
    by_pair = [margin + 1 - 2.25, max(0, margin + 1 - 9), margin + 6.25 - 2.25, margin + 6.25 - 9]
    assert semihard_triplet_loss(x, labels, margin=margin).item() == pytest.approx(sum(by_pair) / 4, abs=1e-12)


def test_a_negative_as_far_as_the_positive_is_not_farther() -> None:
    """On a line: 0 and 2 of one class, negatives at -2 (as far from 0 as 2 is) and at 3."""
    x = torch.tensor([[0.0], [2.0], [-2.0], [3.0]], dtype=torch.float64)
    # (0,2): d 4, negatives 4 and 9 -> 9. (2,0): d 4, negatives 16 and 1 -> 16. (-2,3): d 25, negatives 4 and 16, none
    # beyond -> 16. (3,-2): d 25, negatives 9 and 1, none beyond -> 9.
    by_pair = [10 + 4 - 9, max(0, 10 + 4 - 16), 10 + 25 - 16, 10 + 25 - 9]
    loss = semihard_triplet_loss(x, torch.tensor([0, 0, 1, 1]), margin=10.0)
    assert loss.item() == pytest.approx(sum(by_pair) / 4, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_those_of_the_slow_twin(seed: int) -> None:
    """Points of a grid: many positives and negatives are equally far, and some coincide."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 2, (16, 2), generator=g).double()
    labels = torch.randint(0, 3, (16,), generator=g)
    twin = masf_reference.local_loss(x.numpy(), labels.tolist(), 3.0)
    assert semihard_triplet_loss(x - x.mean(0), labels, margin=3.0).item() == pytest.approx(float(twin), abs=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_slow_twin(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(14, 3, generator=g, dtype=torch.float64) + 100  # far from the origin: digits are kept
    labels = torch.randint(0, 4 + seed, (14,), generator=g)
    for margin in (0.5, 10.0):
        twin = masf_reference.local_loss(x.numpy(), labels.tolist(), margin)
        assert semihard_triplet_loss(x, labels, margin=margin).item() == pytest.approx(float(twin), abs=1e-10)


def test_its_gradient_is_right() -> None:
    g = torch.Generator().manual_seed(1)
    x = torch.randn(8, 3, generator=g, dtype=torch.float64).requires_grad_()
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3])
    assert torch.autograd.gradcheck(lambda rows: semihard_triplet_loss(rows, labels, margin=2.0), (x,))


@pytest.mark.parametrize("labels", [[0, 1, 2], [1, 1, 1]], ids=["no positive", "no negative"])
def test_without_a_triplet_it_is_zero(labels: list[int]) -> None:
    x = torch.randn(3, 2, requires_grad=True)
    loss = semihard_triplet_loss(x, torch.tensor(labels), margin=1.0)
    loss.backward()
    assert loss.item() == 0
    assert (x.grad == 0).all()


def test_the_order_of_the_samples_does_not_matter() -> None:
    g = torch.Generator().manual_seed(2)
    x = torch.randn(12, 3, generator=g, dtype=torch.float64)
    labels, order = torch.randint(0, 3, (12,), generator=g), torch.randperm(12, generator=g)
    one, two = semihard_triplet_loss(x, labels, margin=5.0), semihard_triplet_loss(x[order], labels[order], margin=5.0)
    assert one.item() == pytest.approx(two.item(), abs=1e-12)


def test_classes_far_apart_cost_nothing() -> None:
    x = torch.tensor([[0.0], [0.1], [100.0], [100.1]])
    assert semihard_triplet_loss(x, torch.tensor([0, 0, 1, 1]), margin=10.0).item() == 0
