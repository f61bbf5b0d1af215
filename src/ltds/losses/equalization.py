"""Softmax equalisation (Tan et al., CVPR 2020): samples of other classes mostly spare the logits of rare ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from ltds.core.config import PositiveFraction, Settings
from ltds.core.distributions import bernoulli
from ltds.core.errors import ConfigError, expected
from ltds.losses.classification import ClassificationLoss, CountsNeeded, CountsTable, as_counts


def rare_classes(counts: Tensor, share: float) -> Tensor:
    """(C,) bool: n_k / sum n < share, from counts (C,). A class without images is rare."""
    return counts < share * counts.sum()


def draw_ignored(rare: Tensor, samples: int, gamma: float, generator: torch.Generator) -> Tensor:
    """(N,C) bool: b_ik [k is rare], with b_ik ~ Bernoulli(gamma) drawn for every sample and class; rare (C,)."""
    return bernoulli(gamma, (samples, len(rare)), generator).to(rare.device) & rare


def equalized_cross_entropy(logits: Tensor, labels: Tensor, ignored: Tensor) -> Tensor:
    """(N,) -z_y + log sum_k w_k exp(z_k), w_k = 1 - ignored_k [k != y]: logits (N,C), labels (N,), ignored (N,C).

    The true class always stays; an ignored logit gets exactly zero gradient. Never more than cross-entropy.
    """
    negative = labels[:, None] != torch.arange(logits.shape[1], device=labels.device)
    return F.cross_entropy(logits.masked_fill(ignored & negative, -torch.inf), labels, reduction="none")


class EqualizedLoss(ClassificationLoss):
    """Softmax equalisation: with probability gamma a sample ignores a class with less than rare_share of the images."""

    rare: Tensor  # (C,) bool

    class Config(Settings):
        gamma: PositiveFraction = Field(0.9, description="probability that a sample ignores a rare class")
        rare_share: PositiveFraction = Field(0.005, description="a class with a smaller share of the images is rare")

    def __init__(self, domain_counts: CountsTable, *, gamma: float = 0.9, rare_share: float = 0.005) -> None:
        super().__init__()
        pooled = as_counts(domain_counts).sum(dim=0)
        self.gamma = gamma
        self.register_buffer("rare", rare_classes(pooled, rare_share), persistent=False)  # not learned
        trained = pooled > 0  # an open class counts as rare, but no image of it profits
        if not (self.rare & trained).any():
            raise ConfigError(
                expected(
                    f"criterion.rare_share={rare_share:g}",
                    "above the share of the rarest class with images, or 'equal' is plain cross-entropy",
                    f"{float(pooled[trained].min() / pooled.sum()):.4g} for that class",
                    "Set method.criterion.rare_share to a larger share.",
                )
            )

    @classmethod
    def counts_needed(cls, settings: Mapping[str, Any]) -> CountsNeeded:
        return "pooled"

    def forward(
        self, logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        assert generator is not None, "pass a generator: this criterion draws which negatives it ignores"
        ignored = draw_ignored(self.rare, len(logits), self.gamma, generator)
        return equalized_cross_entropy(logits, labels, ignored)
