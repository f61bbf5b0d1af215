"""Soft labels: the loss of a label that is a mixture of labels, for any criterion."""

from __future__ import annotations

import torch
from torch import Tensor

from ltds.losses.criteria import Criterion


def soft_label_loss(
    criterion: Criterion,
    logits: Tensor,
    weights: Tensor,
    labels: Tensor,
    domains: Tensor,
    generator: torch.Generator | None = None,
) -> Tensor:
    """(N,) losses sum_m weights[:, m] criterion(logits, labels[:, m], domains[:, m]).

    logits (N,C); weights, labels, domains (N,M): the M labels of a sample, each with the domain that it came from.
    Cross-entropy is linear in the label, so this is CE(z, sum_m w_m onehot(y_m)); other criteria are mixed in the same
    way, each term with the counts of its domain. A criterion that draws, draws from `generator` once per term.
    """
    terms = [criterion(logits, labels[:, m], domains[:, m], generator) for m in range(labels.shape[1])]
    return (weights.to(logits) * torch.stack(terms, dim=1)).sum(dim=1)
