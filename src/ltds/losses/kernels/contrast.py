"""The contrast of Eq. (4) with loss and gradient computed together: memory linear in the number of classes.

Nothing of size C x C is ever held: a tile is multiplied, exponentiated, summed and multiplied back before the next one.
The gradient is computed in the forward pass and only scaled in the backward one, so the loss can be differentiated
once. The readable form is in `semantic_alignment.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ltds.losses.kernels.choice import refuse_second_order
from ltds.losses.kernels.contrast_pass import ContrastPass

if TYPE_CHECKING:
    from ltds.losses.class_sample import ClassSample
    from ltds.losses.semantic_alignment import Directions


def fused_contrast(
    tables: Tensor,
    semantics: Tensor,
    projected: Tensor | None,
    directions: Directions,
    margin: float,
    temperature: float,
    sample: ClassSample | None = None,
) -> Tensor:
    """Sum over directions of weight x mean over classes of Eq. (4), a scalar: tables (T,C,S), semantics (C,S) constant.

    projected (T,C) marks the rows that are not copies of s; a copy is a constant, without gradient. None: all of them.
    Rows have unit length, so exp(cosine / tau) needs no row maximum (`in_range`).
    """
    if projected is None:
        projected = torch.ones(tables.shape[:2], dtype=torch.bool)
    arguments = (tables, semantics, projected, directions, margin, temperature, sample)
    loss: Tensor = _FusedContrast.apply(*arguments)  # type: ignore[no-untyped-call]
    return loss


class _FusedContrast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tables: Tensor,
        semantics: Tensor,
        projected: Tensor,
        directions: Directions,
        margin: float,
        tau: float,
        sample: ClassSample | None,
    ) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        with torch.autocast(tables.device.type, enabled=False):
            problems = [(slice(None), directions)]
            if not directions.has_pairs:  # no product between domains: each is a separate problem
                problems = [(slice(m, m + 1), directions.alone(m)) for m in range(len(tables))]
            done = [
                ContrastPass(tables[m], semantics, projected[m], d, margin, tau, sample).run(wanted)
                for m, d in problems
            ]
        if wanted:
            ctx.save_for_backward(done[0][1] if len(done) == 1 else torch.cat([gradient for _, gradient in done]))
        return torch.stack([loss for loss, _ in done]).sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_order()
        (gradient,) = ctx.saved_tensors
        return gradient * upstream, None, None, None, None, None, None
