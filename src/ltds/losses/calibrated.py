"""Cross-entropy calibrated by class counts: the paper's L_dc, Eq. (2), and balanced softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.losses.classification import ClassificationLoss, CountsNeeded, CountsTable, as_counts


def log_counts(counts: Tensor) -> Tensor:
    """log n, of the shape of `counts` (..., C), with log 0 = -inf: a class without images leaves the denominator."""
    return torch.log(counts)


def calibrated_cross_entropy(logits: Tensor, labels: Tensor, log_n: Tensor) -> Tensor:
    """(N,) -log softmax(z + log n)_y: logits (N,C), labels (N,), log_n (N,C) or (C,).

    Eq. (2): L_dc = -log [ n_y exp(z_y) / sum_c n_c exp(z_c) ] with log_n[i] = log n^{d_i}, the counts of the sample's
    domain. With counts pooled over domains it is the balanced softmax (BSCE). A class with n_c = 0 gets exactly zero
    gradient.
    """
    return F.cross_entropy(logits + log_n, labels, reduction="none")


class ShiftedCrossEntropy(ClassificationLoss):
    """-log softmax(z + log n)_y, where the buffer log_n (K,C) holds what is added to the logits for each source."""

    log_n: Tensor

    def __init__(self, log_n: Tensor) -> None:
        super().__init__()
        self.register_buffer("log_n", log_n, persistent=False)  # known from the task, not learned

    def forward(
        self, logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        return calibrated_cross_entropy(logits, labels, self.log_n[domains])


class PlainCrossEntropy(ShiftedCrossEntropy):
    """Cross-entropy, which ignores the counts."""

    def __init__(self, domain_counts: CountsTable) -> None:
        super().__init__(torch.zeros_like(as_counts(domain_counts)))


class BalancedSoftmaxLoss(ShiftedCrossEntropy):
    """Balanced softmax (Ren et al., NeurIPS 2020): the counts are pooled over the sources."""

    def __init__(self, domain_counts: CountsTable) -> None:
        counts = as_counts(domain_counts)
        super().__init__(log_counts(counts.sum(dim=0).expand_as(counts)))

    @classmethod
    def counts_needed(cls, settings: Mapping[str, Any]) -> CountsNeeded:
        return "pooled"


class DistributionCalibratedLoss(ShiftedCrossEntropy):
    """The paper's L_dc, Eq. (2): the counts of the sample's domain."""

    def __init__(self, domain_counts: CountsTable) -> None:
        super().__init__(log_counts(as_counts(domain_counts)))

    @classmethod
    def counts_needed(cls, settings: Mapping[str, Any]) -> CountsNeeded:
        return "domain"
