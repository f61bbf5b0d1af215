"""The curriculum of CuMix: how strongly an epoch mixes, from which domains, and the random pairs of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ltds.core.distributions import bernoulli, beta


@dataclass(frozen=True)
class MixingPairs:
    """The partner of each of N samples, partners (N,), and the share each keeps of itself, ratios r (N,)."""

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
    """The probability that a partner has the sample's domain: 1 up to epoch N = length, then linearly to 0 at 2 N."""
    return min(1.0, max((2 * length - epoch) / length, 0.0))


def draw_pairs(sizes: Sequence[int], concentration: float, same: float, generator: torch.Generator) -> MixingPairs:
    """Partners and ratios for samples that are sorted by domain, `sizes` of each.

    With probability `same` a sample's partner has the same domain, otherwise the next domain in a random cycle of all
    domains. Partners from a domain are a shuffle of its samples, repeated where there are too few of them.
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
    return MixingPairs(torch.where(stays, within, across), ratios)


def random_cycle(n: int, generator: torch.Generator) -> list[int]:
    """A random permutation of n that is one cycle (Sattolo's algorithm), so that no element stays where it was."""
    order = list(range(n))
    for a in range(1, n):
        b = int(torch.randint(a, (), generator=generator))
        order[a], order[b] = order[b], order[a]
    return order
