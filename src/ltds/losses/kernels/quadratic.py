"""The quadratic form of Eq. (8) for full covariances, with two derivatives and without a (U,C,D) tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltds.core.devices import to_device


def full_quadratic(weight: Tensor, true_weight: Tensor, sigma: Tensor, labels: Tensor) -> Tensor:
    """(N,C) (w_c - v_y)^T Sigma_y (w_c - v_y): weight w (C,D), true_weight v (C,D), sigma (C,D,D), labels y (N,).

    Give labels on the CPU: for those on a GPU the host has to wait.
    """
    classes, row = labels.cpu().unique(return_inverse=True)  # type: ignore[no-untyped-call]
    quadratic: Tensor = _FullQuadratic.apply(weight, true_weight, sigma, classes)  # type: ignore[no-untyped-call]
    return quadratic[to_device(row, quadratic.device)]


class _FullQuadratic(torch.autograd.Function):
    """(U,C) (w_c - v_u)^T Sigma_u (w_c - v_u) for classes u (U,), on the CPU; keeps no (U,C,D) tensor for backward."""

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
        return *_QuadraticSlope.apply(*ctx.saved_tensors, upstream), None, None  # type: ignore[no-untyped-call]


class _QuadraticSlope(torch.autograd.Function):
    """Gradients of `_FullQuadratic`, as a separate function so that second order keeps no (U,C,D) tensor either.

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
