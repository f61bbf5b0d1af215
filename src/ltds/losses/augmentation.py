"""Implicit augmentation of features along the directions in which similar classes vary: the paper's L_aug."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Schedule = Literal["ramp", "constant"]


def strength_at(epoch: float, *, start: float, end: float, peak: float, schedule: Schedule = "ramp") -> float | None:
    """lambda at an epoch (from 0), or None before T_Sigma = `start`, where the loss has no augmentation term.

    "ramp": peak (epoch - start) / (end - start), the released code (peak 10 over epochs 40 to 100, a mean of 4.92);
    "constant": the peak from `start` on (the paper prints 5).
    """
    if epoch < start:
        return None
    return peak * (epoch - start) / (end - start) if schedule == "ramp" else peak


def augmentation(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor,
    sigma: Tensor,
    strength: float,
    *,
    log_n: Tensor | None = None,
    true_weight: Tensor | None = None,
) -> Tensor:
    """(N,) L_aug of each sample: cross-entropy of `augmented_logits`, calibrated with `log_n`, (N,C) or (C,), if given.

    Eq. (8), the bound of Eq. (6). Reading: Eq. (8) prints w_y^T f in the denominator, where w_c^T f is meant; the bias,
    dropped there for simplicity, is used; adding log n_c to the biases leaves the bound exact.
    """
    augmented = augmented_logits(logits, labels, weight, sigma, strength, true_weight=true_weight)
    if log_n is not None:
        augmented = augmented + log_n
    return F.cross_entropy(augmented, labels, reduction="none")


def augmented_logits(
    logits: Tensor,
    labels: Tensor,
    weight: Tensor,
    sigma: Tensor,
    strength: float,
    *,
    true_weight: Tensor | None = None,
) -> Tensor:
    """(N,C) w_c^T f + b_c + (lambda/2) (w_c - w_y)^T Sigma'_y (w_c - w_y).

    logits W f + b (N,C); labels y (N,); weight W (C,D); sigma Sigma' (C,D) diagonal or (C,D,D), a constant.
    The gradient flows through every w. `true_weight` (C,D) stands for w_y where it differs from W (the released
    meta-test takes w_c from the slow and w_y from the fast weights).
    """
    true_weight = weight if true_weight is None else true_weight
    with torch.autocast(weight.device.type, enabled=False):  # the expansion below loses digits in half precision
        centre = weight.detach().mean(0)  # differences do not change, but the expansion keeps its digits in float32
        quadratic = _diagonal_quadratic if sigma.dim() == 2 else _full_quadratic
        return logits + 0.5 * strength * quadratic(weight - centre, true_weight - centre, sigma.detach(), labels)


def _diagonal_quadratic(weight: Tensor, true_weight: Tensor, sigma: Tensor, labels: Tensor) -> Tensor:
    """(N,C) sum_a S_a (w_ca - w_ya)^2 = S.(w_c^2) - 2 (S w_y).w_c + S.(w_y^2), S = diag Sigma'_y: no (N,C,D) tensor."""
    spread, own = sigma[labels], true_weight[labels]
    constant = (spread * own.square()).sum(1, keepdim=True)
    return spread @ weight.square().T - 2 * (spread * own) @ weight.T + constant


def _full_quadratic(weight: Tensor, true_weight: Tensor, sigma: Tensor, labels: Tensor) -> Tensor:
    classes, row = labels.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    quadratic: Tensor = _FullQuadratic.apply(weight, true_weight, sigma, classes)  # type: ignore[no-untyped-call]
    return quadratic[row]


class _FullQuadratic(torch.autograd.Function):
    """(U,C) (w_c - v_u)^T Sigma_u (w_c - v_u) for classes u (U,), keeping no (U,C,D) tensor for the way back."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, true_weight: Tensor, sigma: Tensor, classes: Tensor) -> Tensor:
        ctx.save_for_backward(weight, true_weight, sigma, classes)
        rows = []
        for u in classes.tolist():
            difference = weight - true_weight[u]
            rows.append(((difference @ sigma[u]) * difference).sum(1))
        return torch.stack(rows)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return *_Slope.apply(*ctx.saved_tensors, upstream), None, None  # type: ignore[no-untyped-call]


class _Slope(torch.autograd.Function):
    """Gradients of `_FullQuadratic`, a function of their own so that second order keeps no (U,C,D) tensor either.

    With M_u = Sigma_u + Sigma_u^T they are sums of g_uc (w_c - v_u) M_u, over u for w_c and, negative, over c for v_u.
    """

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, true_weight: Tensor, sigma: Tensor, classes: Tensor, upstream: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(weight, true_weight, sigma, classes, upstream)
        by_weight, by_true = torch.zeros_like(weight), torch.zeros_like(true_weight)
        for u, up in zip(classes.tolist(), upstream, strict=True):
            slope = up[:, None] * ((weight - true_weight[u]) @ (sigma[u] + sigma[u].T))
            by_weight = by_weight + slope
            by_true[u] = -slope.sum(0)
        return by_weight, by_true

    @staticmethod
    def backward(ctx: Any, to_weight: Tensor, to_true: Tensor) -> tuple[Tensor | None, ...]:
        weight, true_weight, sigma, classes, upstream = ctx.saved_tensors
        by_weight, by_true, by_upstream = torch.zeros_like(weight), torch.zeros_like(true_weight), []
        for u, up in zip(classes.tolist(), upstream, strict=True):
            turned = (to_weight - to_true[u]) @ (sigma[u] + sigma[u].T)
            by_upstream.append((turned * (weight - true_weight[u])).sum(1))
            by_weight = by_weight + up[:, None] * turned
            by_true[u] = -(up[:, None] * turned).sum(0)
        return by_weight, by_true, None, None, torch.stack(by_upstream)
