"""Softmax equalisation (SEQL): samples of other classes leave the logits of rare classes alone, most of the time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.distributions import bernoulli


def rare_classes(counts: Tensor, share: float) -> Tensor:
    """(C,) bool: n_k / sum n < share, from counts (C,). A class without images is rare."""
    return counts < share * counts.sum()


def draw_ignored(rare: Tensor, samples: int, gamma: float, generator: torch.Generator) -> Tensor:
    """(N,C) bool: b_ik [k is rare], with b_ik ~ Bernoulli(gamma) fresh for every sample and class; rare (C,)."""
    return bernoulli(gamma, (samples, len(rare)), generator).to(rare.device) & rare


def equalized_cross_entropy(logits: Tensor, labels: Tensor, ignored: Tensor) -> Tensor:
    """(N,) -z_y + log sum_k w_k exp(z_k), w_k = 1 - ignored_k [k != y]: logits (N,C), labels (N,), ignored (N,C).

    METHODS 2.3. The true class always stays; an ignored logit gets exactly zero gradient. At most cross-entropy.
    """
    negative = labels[:, None] != torch.arange(logits.shape[1], device=labels.device)
    return F.cross_entropy(logits.masked_fill(ignored & negative, -torch.inf), labels, reduction="none")
