"""Cross-entropy of a linear classifier on many rows, without keeping the logits where there are many classes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.losses.kernels import tiles
from ltds.losses.kernels.choice import refuse_second_order, uses_fused


def linear_cross_entropy(
    rows: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, *, fused: bool | None = None
) -> Tensor:
    """Mean of CE(W x + b, y) over rows x, a scalar: rows (M,D), weight (C,D), bias (C,), labels (M,).

    Fused: blocks of rows, loss and gradients together, no (M,C) tensor, differentiable once.
    """
    rows = rows.to(weight.dtype)
    if uses_fused(fused, len(weight)):
        loss: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, labels)  # type: ignore[no-untyped-call]
        return loss
    return F.cross_entropy(F.linear(rows, weight, bias), labels)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
        total = rows.new_zeros(())
        by_rows, by_weight, by_bias = torch.empty_like(rows), torch.zeros_like(weight), torch.zeros_like(bias)
        with torch.autocast(rows.device.type, enabled=False):
            for start in range(0, len(rows), tiles.ROWS):
                block = slice(start, start + tiles.ROWS)
                logits, true = torch.addmm(bias, rows[block], weight.T), labels[block, None]
                highest = logits.amax(1, keepdim=True)
                total += (highest - logits.gather(1, true)).sum()
                error = logits.sub_(highest).exp_()  # becomes softmax - one-hot, in place
                mass = error.sum(1, keepdim=True)
                total += mass.log().sum()
                error.div_(mass).scatter_add_(1, true, -torch.ones_like(mass))
                torch.mm(error, weight, out=by_rows[block])
                by_weight.addmm_(error.T, rows[block])
                by_bias += error.sum(0)
        ctx.save_for_backward(*(g.div_(len(rows)) for g in (by_rows, by_weight, by_bias)))
        return total / len(rows)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_order()
        return *(g * upstream for g in ctx.saved_tensors), None
