"""CuMix's curriculum: how strongly to mix in an epoch, with whom, and the draws of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ltds.core.draws import bernoulli, beta


@dataclass(frozen=True)
class Pairs:
    """Whom each of N samples is mixed with: partners (N,), and what it keeps of itself: ratios r (N,)."""

    partners: Tensor
    ratios: Tensor

    def mix(self, x: Tensor) -> Tensor:
        """r x + (1 - r) x_j for x (N,...)."""
        r = self.ratios.to(x).reshape(-1, *(1 for _ in x.shape[1:]))
        return r * x + (1 - r) * x[self.partners.to(x.device)]


def beta_at(epoch: int, *, peak: float, length: float) -> float:
    """b of Beta(b, b) in this epoch, from 0: min(peak, max(peak epoch / N, .1)) with N = length."""
    return min(peak, max(peak * epoch / length, 0.1))


def same_domain_probability(epoch: int, *, length: float) -> float:
    """How probably a partner is of the sample's own domain: 1 up to epoch N = length, then linearly to 0 at 2 N."""
    return min(1.0, max((2 * length - epoch) / length, 0.0))


def draw_pairs(sizes: Sequence[int], concentration: float, same: float, generator: torch.Generator) -> Pairs:
    """Partners and ratios for samples that stand domain by domain, `sizes` of each.

    Each sample's partner is of its own domain with probability `same`, otherwise of the domain that a random cycle of
    all domains puts in its place; within a domain partners are a shuffle of it (repeated where it is the smaller).
    """
    starts = [sum(sizes[:d]) for d in range(len(sizes))]

    def shuffled(domain: int, count: int) -> Tensor:
        order = torch.randperm(sizes[domain], generator=generator)
        return starts[domain] + order[torch.arange(count) % sizes[domain]]

    other = random_cycle(len(sizes), generator)
    across = torch.cat([shuffled(other[d], count) for d, count in enumerate(sizes)])
    within = torch.cat([shuffled(d, count) for d, count in enumerate(sizes)])
    stays = bernoulli(same, (len(within),), generator)
    ratios = beta(concentration, concentration, (len(within),), generator)
    return Pairs(torch.where(stays, within, across), ratios)


def random_cycle(n: int, generator: torch.Generator) -> list[int]:
    """A permutation of n that is one cycle, all such equally likely (Sattolo): no element stays in its place."""
    order = list(range(n))
    for a in range(1, n):
        b = int(torch.randint(a, (), generator=generator))
        order[a], order[b] = order[b], order[a]
    return order
