"""A model of LT-DS as functions, at its weights or after an inner step, and what it computes for a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class ModelFunctions:
    """f, h and e as functions, at theta or at theta', and the weight (C,D) and bias (C,) of h."""

    f: Callable[[Tensor], Tensor]
    h: Callable[[Tensor], Tensor]
    e: Callable[[Tensor], Tensor]
    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class Outputs:
    """Features f(x) (N,D), logits h(f(x)) (N,C) and projected features e(f(x)) (N,S), with labels and domains (N,)."""

    features: Tensor
    logits: Tensor
    projected: Tensor
    labels: Tensor
    domains: Tensor

    def of(self, domain: int) -> Outputs:
        """The outputs for the samples of one domain."""
        mask = self.domains == domain
        tensors = (self.features, self.logits, self.projected, self.labels, self.domains)
        return Outputs(*(tensor[mask] for tensor in tensors))
