"""BatchNorm over the rows of all ranks, on any device, with gradients of any order.

torch.nn.SyncBatchNorm needs CUDA, replaces modules, and has no second-order gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ltds.core.ranks import Ranks, current_ranks


def synchronise(network: nn.Module) -> None:
    """Let each BatchNorm of a network use the statistics of all ranks, while the network shares a batch out."""
    for layer in network.modules():
        if isinstance(layer, _BatchNorm):
            layer.forward = _synced(layer, layer.forward)  # type: ignore[assignment, method-assign]


def _synced(layer: _BatchNorm, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def synced_forward(x: Tensor) -> Tensor:
        ranks = current_ranks()
        if ranks.alone or not layer.training:
            return forward(x)
        return _normalise(layer, x, ranks)

    return synced_forward


def _normalise(layer: _BatchNorm, x: Tensor, ranks: Ranks) -> Tensor:
    """(x - mu) / sqrt(var + eps) w + b, with mu and var over the rows and positions of all ranks."""
    dtype, x = x.dtype, x.to(torch.promote_types(x.dtype, torch.float32))  # sums need more than half precision
    others = [d for d in range(x.ndim) if d != 1]  # all dimensions but the channels
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    rows = x.new_tensor([x.numel() / x.shape[1]])
    summed = _all_sum(ranks, torch.cat([x.sum(others), rows]))
    count, mean = summed[-1].detach(), summed[:-1] / summed[-1].detach()
    centred = x - mean.view(shape)
    variance = _all_sum(ranks, centred.square().sum(others)) / count
    _update_statistics(layer, mean.detach(), variance.detach() * (count / (count - 1)))
    y = centred * (variance + layer.eps).rsqrt().view(shape)
    if layer.affine:
        y = y * layer.weight.view(shape) + layer.bias.view(shape)
    return y.to(dtype)


@torch.no_grad()
def _update_statistics(layer: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    if layer.running_mean is None or layer.running_var is None:
        return
    assert layer.num_batches_tracked is not None
    layer.num_batches_tracked.add_(1)
    share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    layer.running_mean.mul_(1 - share).add_(mean, alpha=share)
    layer.running_var.mul_(1 - share).add_(variance, alpha=share)


def _all_sum(ranks: Ranks, x: Tensor) -> Tensor:
    return _AllSum.apply(ranks, x)  # type: ignore[no-any-return, no-untyped-call]


class _AllSum(torch.autograd.Function):
    """The sum over ranks, which each rank then uses for its own rows: its derivative is the same function."""

    @staticmethod
    def forward(ctx: Any, ranks: Ranks, x: Tensor) -> Tensor:
        ctx.ranks = ranks
        return ranks.sums([x])[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, _AllSum.apply(ctx.ranks, *gradients)  # type: ignore[no-untyped-call]
