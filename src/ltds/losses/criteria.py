"""Criteria by name: the classification losses that a method may be given."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ltds.core.task import Task
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts

CriterionName = Literal["ce", "bsce", "dc"]


class Criterion(nn.Module):
    """(N,) losses of logits (N,C), labels (N,) and source domains (N,).

    "ce": cross-entropy. "bsce": balanced softmax, counts pooled over the sources. "dc": the paper's distribution
    calibrated loss, Eq. (2), counts of the sample's own domain.
    """

    log_n: Tensor  # (K,C): what is added to the logits of a sample of each source

    def __init__(self, name: CriterionName, task: Task) -> None:
        super().__init__()
        counts = torch.tensor(task.counts, dtype=torch.get_default_dtype())
        if name == "ce":
            counts = torch.ones_like(counts)
        elif name == "bsce":
            counts = counts.sum(dim=0).expand_as(counts)
        self.register_buffer("log_n", log_counts(counts), persistent=False)  # a fact of the task, not learned

    def forward(self, logits: Tensor, labels: Tensor, domains: Tensor) -> Tensor:
        return calibrated_cross_entropy(logits, labels, self.log_n[domains])
