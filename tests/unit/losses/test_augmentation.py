"""Eqs. (6) and (8) against their slow twins, and their edges."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from ltds.losses.augmentation import augmentation_loss, augmented_logits, strength_at
from ltds.losses.calibrated import log_counts
from reference import equations as eq


def case(full, C=4, N=5, D=3, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    W, b, f = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((C, D), (C,), (N, D)))
    root = torch.randn(C, D, D, generator=generator, dtype=torch.float64)
    sigma = root @ root.transpose(1, 2) if full else root.diagonal(dim1=1, dim2=2).square().contiguous()
    labels = torch.randint(C, (N,), generator=generator)
    return *(x.to(dtype) for x in (W, b, f, sigma)), labels


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("C", [2, 4])
def test_equals_the_slow_twin(full, C):
    W, b, f, sigma, labels = case(full, C)
    n = [5.0, 80.0, 1.0, 30.0][:C]
    fast = W + 0.1 * torch.randn_like(W)
    for other in (None, fast):
        true_weight = W if other is None else other
        logits = f @ true_weight.T + b
        for counts in (None, n):
            log_n = None if counts is None else log_counts(torch.tensor(counts).double())
            loss = augmentation_loss(logits, labels, W, sigma, 2.5, log_n=log_n, true_weight=other)
            for i, y in enumerate(labels.tolist()):
                fast_list = None if other is None else other.tolist()
                twin = eq.aug(f[i].tolist(), y, W.tolist(), b.tolist(), sigma[y].tolist(), 2.5, counts, fast_list)
                assert loss[i].item() == pytest.approx(float(twin), abs=1e-10)


def test_diagonal_is_the_full_matrix_with_zeros():
    W, b, f, sigma, labels = case(False)
    logits = f @ W.T + b
    full = augmented_logits(logits, labels, W, torch.diag_embed(sigma), 3.0)
    assert_close(augmented_logits(logits, labels, W, sigma, 3.0), full, rtol=0, atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_bound_of_the_expected_loss(full):
    """Eq. (6) by Monte Carlo: no less than the mean loss of features drawn around f, and above plain cross-entropy."""
    W, b, f, sigma, labels = case(full, D=2, seed=3)
    W, strength = 0.4 * W, 1.5
    bound = augmentation_loss(f @ W.T + b, labels, W, sigma, strength)
    matrices = sigma if full else torch.diag_embed(sigma)
    for i, y in enumerate(labels.tolist()):
        noise = torch.randn(100_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(i))
        drawn = f[i] + noise @ torch.linalg.cholesky(strength * matrices[y]).T
        losses = F.cross_entropy(drawn @ W.T + b, labels[i].expand(len(drawn)), reduction="none")
        assert losses.mean() - 4 * losses.std() / len(drawn) ** 0.5 <= bound[i]
        exact = eq.expected_cross_entropy(
            f[i].tolist(), y, W.tolist(), b.tolist(), matrices[y].tolist(), strength, nodes=24
        )
        assert exact == pytest.approx(losses.mean().item(), abs=5 * losses.std().item() / len(drawn) ** 0.5)
        assert exact <= bound[i].item() + 1e-12


@pytest.mark.parametrize("full", [False, True])
def test_gradcheck_to_second_order(full):
    W, b, f, sigma, labels = case(full, N=3)
    labels = torch.tensor([1, 1, 3])
    inputs = (W.requires_grad_(), f.requires_grad_(), (W.detach() + 0.3).requires_grad_())

    def loss(weight, features, other):
        return augmentation_loss(features @ weight.T + b, labels, weight, sigma, 0.7, true_weight=other)

    assert torch.autograd.gradcheck(loss, inputs)
    assert torch.autograd.gradgradcheck(loss, inputs)


def test_sigma_is_a_constant():
    W, b, f, sigma, labels = case(False)
    assert not augmentation_loss(f @ W.T + b, labels, W, sigma.requires_grad_(), 1.0).requires_grad


def test_float32_keeps_its_digits_far_from_the_origin():
    """Weights around 30 that differ by 0.1: the expansion would cancel all digits if W were not centred."""
    W, _, _, sigma, labels = case(False, C=20, N=16, D=64)
    W = 30 + 0.1 * W
    exact = augmented_logits(torch.zeros(16, 20).double(), labels, W, sigma, 2.0)
    single = augmented_logits(torch.zeros(16, 20), labels, W.float(), sigma.float(), 2.0)
    rounded = augmented_logits(torch.zeros(16, 20).double(), labels, W.float().double(), sigma, 2.0)
    assert_close(single.double(), rounded, rtol=1e-4, atol=1e-5)
    assert exact.abs().max() > 0.5


@pytest.mark.parametrize("full", [False, True])
def test_keeps_no_sample_by_class_by_feature_tensor(full):
    N, C, D = 40, 40, 20
    W, b, f, sigma, _ = case(full, C, N, D)
    labels = torch.arange(N)  # every class once: nothing can be shared between samples
    W.requires_grad_()
    sizes = []

    def remember(tensor):
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda x: x):
        loss = augmentation_loss(f @ W.T + b, labels, W, sigma, 1.0)
        torch.autograd.grad(loss.sum(), W, create_graph=True)  # second order too
    assert max(sizes) <= max(N * D, C * D, N * C, sigma.numel())
    assert sum(size for size in sizes if size != sigma.numel()) < N * C * D


def test_strength():
    assert strength_at(10, start=20, end=50, peak=10) is None
    assert strength_at(20, start=20, end=50, peak=10) == 0
    assert strength_at(35, start=20, end=50, peak=10) == 5
    assert strength_at(35, start=20, end=50, peak=4, schedule="constant") == 4
