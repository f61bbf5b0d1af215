"""Cross-entropy of a linear classifier on many rows, without keeping the logits where there are many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.losses.kernels import tiles
from ltds.losses.kernels.choice import refuse_second_order, uses_fused

if TYPE_CHECKING:
    from ltds.losses.class_sample import ClassSample


def linear_cross_entropy(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    *,
    fused: bool | None = None,
    sample: ClassSample | None = None,
) -> Tensor:
    """Mean of CE(W x + b, y) over rows x, a scalar: rows (M,D), weight (C,D), bias (C,), labels (M,).

    Fused: blocks of rows, loss and gradients together, no (M,C) tensor, differentiable once. With `sample`, weight and
    bias are those of its classes; a row counts as the anchor of its label, the other classes as negatives.
    """
    rows = rows.to(weight.dtype)
    if uses_fused(fused, len(weight)):
        loss: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, labels, sample)  # type: ignore[no-untyped-call]
        return loss
    if sample is None:
        return F.cross_entropy(F.linear(rows, weight, bias), labels)
    lift = sample.log_weights.fill_diagonal_(0).to(rows)[labels]  # the true class is not a negative
    losses = F.cross_entropy(F.linear(rows, weight, bias) + lift, labels, reduction="none")
    return (losses * sample.anchor_weights.to(rows)[labels]).mean()


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, sample: ClassSample | None
    ) -> Tensor:
        total = rows.new_zeros(())
        by_rows, by_weight, by_bias = torch.empty_like(rows), torch.zeros_like(weight), torch.zeros_like(bias)
        counted = None if sample is None else sample.anchor_weights.to(rows)[labels, None]
        lift = None if sample is None else sample.factors.log().to(rows)[labels, None]
        with torch.autocast(rows.device.type, enabled=False):
            for start in range(0, len(rows), tiles.ROWS):
                block = slice(start, start + tiles.ROWS)
                logits, true = torch.addmm(bias, rows[block], weight.T), labels[block, None]
                if sample is not None and lift is not None:
                    logits[:, sample.certain :] += lift[block]
                    logits.scatter_add_(1, true, -lift[block] * (true >= sample.certain))  # no negative of itself
                highest = logits.amax(1, keepdim=True)
                total += _sum(highest - logits.gather(1, true), counted, block)
                error = logits.sub_(highest).exp_()  # becomes softmax - one-hot, in place
                mass = error.sum(1, keepdim=True)
                total += _sum(mass.log(), counted, block)
                error.div_(mass).scatter_add_(1, true, -torch.ones_like(mass))
                if counted is not None:
                    error.mul_(counted[block])
                torch.mm(error, weight, out=by_rows[block])
                by_weight.addmm_(error.T, rows[block])
                by_bias += error.sum(0)
        ctx.save_for_backward(*(g.div_(len(rows)) for g in (by_rows, by_weight, by_bias)))
        return total / len(rows)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_order()
        return *(g * upstream for g in ctx.saved_tensors), None, None


def _sum(values: Tensor, counted: Tensor | None, block: slice) -> Tensor:
    """The sum over the rows of a block, each counted as often as `counted` (M,1) says."""
    return values.sum() if counted is None else (values * counted[block]).sum()
