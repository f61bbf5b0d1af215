"""Criteria as a user would write them: a function, and classes that read settings and counts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

import ltds
from ltds.losses import ClassificationLoss


def focal(logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None) -> Tensor:
    """(1 - p_y)^2 CE (Lin et al., ICCV 2017)."""
    plain = F.cross_entropy(logits, labels, reduction="none")
    return (1 - torch.exp(-plain)) ** 2 * plain


class ScaledLoss(ClassificationLoss):
    """alpha CE, with a setting that no loss of the package has."""

    class Config(ltds.Settings):
        alpha: float = Field(1.0, gt=0, description="a factor")
        floor: float | None = None

    def __init__(self, domain_counts: Tensor, *, alpha: float = 1.0, floor: float | None = None) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, logits, labels, domains, generator=None):
        return self.alpha * F.cross_entropy(logits, labels, reduction="none")


class NoSettings(ClassificationLoss):
    Config = int


class TakenName(ClassificationLoss):
    class Config(ltds.Settings):
        name: str = "mine"


class WeightedLoss(ClassificationLoss):
    """n_y^-tau CE, with the counts of the sample's domain; as it was written before there was `Config`."""

    weight: Tensor

    def __init__(self, domain_counts: Tensor, *, tau: float, power: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("weight", domain_counts.clamp(min=1) ** (-tau * power), persistent=False)

    @classmethod
    def counts_needed(cls, settings):
        return "domain"

    def forward(self, logits, labels, domains, generator=None):
        return self.weight[domains, labels] * F.cross_entropy(logits, labels, reduction="none")


class NeedsMore(ClassificationLoss):
    def __init__(self, domain_counts: Tensor, *, alpha: float) -> None:
        super().__init__()


def two_arguments(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


def array(logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None) -> object:
    return F.cross_entropy(logits, labels, reduction="none").detach().numpy()


class NoLoss:
    pass


def mean_loss(logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None) -> Tensor:
    return F.cross_entropy(logits, labels)
