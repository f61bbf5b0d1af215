"""When a fused kernel is used in place of the readable form, and what it cannot do."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ltds.core.errors import ConfigError

FUSED_FROM = 200
"""Number of classes from which the fused kernels are faster (measured with benchmarks/step.py)."""


def uses_fused(fused: bool | None, classes: int) -> bool:
    """Whether to use the fused kernel: `fused` itself, or for None a choice by the number of classes."""
    return classes >= FUSED_FROM if fused is None else fused


def refuse_second_order() -> None:
    """Raise inside a backward pass that keeps a graph.

    torch's once_differentiable does not raise where the upstream gradient is a constant, such as a loss weight; the
    second derivative would then silently lack this term.
    """
    if torch.is_grad_enabled():
        raise ConfigError(
            "Expected a fused loss to be differentiated once, but got create_graph=True. "
            "Pass fused=False to the losses for second-order gradients."
        )


def in_range(tables: Tensor, margin: float, temperature: float, classes: int | None = None) -> bool:
    """Whether sums of exp(cosine / temperature) over unit rows neither overflow nor vanish in this number type.

    tables (T,C,S); `classes`: how many they stand for, if not C.
    """
    terms = math.log(2 * tables.shape[0] * (classes or tables.shape[1]) + 2)
    return (1 + abs(margin)) / temperature + terms < math.log(torch.finfo(tables.dtype).max)
