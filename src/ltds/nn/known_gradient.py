"""A loss whose gradient is already computed, so that its graph can be freed and is not traversed twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def with_known_gradient(value: Tensor, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """A scalar equal to `value` whose derivative by each parameter is the given gradient."""
    result: Tensor = _KnownGradient.apply(value.detach(), len(parameters), *parameters, *gradients)  # type: ignore[no-untyped-call]
    return result


class _KnownGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors[count:])
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        scaled = torch._foreach_mul(list(gradients), upstream)
        return None, None, *scaled, *(None for _ in gradients)
