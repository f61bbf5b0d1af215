"""A model of LT-DS as functions, at its weights or after an inner step, and what it computes for a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ltds.core.devices import to_device


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
    """Features f(x) (N,D), logits h(f(x)) (N,C) and projected features e(f(x)) (N,S), with labels and domains (N,).

    host_labels and host_domains are the same on the CPU: looking at them there does not make the host wait for a GPU.
    """

    features: Tensor
    logits: Tensor
    projected: Tensor
    labels: Tensor
    domains: Tensor
    host_labels: Tensor
    host_domains: Tensor

    def of(self, domain: int) -> Outputs:
        """The outputs for the samples of one domain."""
        chosen = (self.host_domains == domain).nonzero()[:, 0]
        index = to_device(chosen, self.features.device)
        tensors = (self.features, self.logits, self.projected, self.labels, self.domains)
        features, logits, projected, labels, domains = (tensor[index] for tensor in tensors)
        host_labels, host_domains = self.host_labels[chosen], self.host_domains[chosen]
        return Outputs(features, logits, projected, labels, domains, host_labels, host_domains)
