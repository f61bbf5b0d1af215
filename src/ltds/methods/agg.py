"""Agg: all source domains together, with a criterion of choice."""

from __future__ import annotations

import torch
from torch import nn

from ltds.core.config import Settings
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.criteria import Criterion, CriterionName
from ltds.methods.base import Method
from ltds.semantics.embeddings import ClassEmbeddings


class AggConfig(Settings):
    """`criterion`: ce (plain), bsce (balanced softmax, pooled counts) or dc (the paper's Eq. 2, counts per domain)."""

    criterion: CriterionName = "ce"


class Agg(Method):
    """mean over source domains of criterion(h(f(x)), y), each domain in its own forward pass.

    METHODS 0.3: BatchNorm sees one domain at a time.
    """

    Config = AggConfig

    def __init__(
        self,
        config: AggConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        self.criterion = Criterion(config.criterion, task)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        per_domain = []
        for domain in range(len(self.task.sources)):
            own = batch.of(domain)
            logits = self.predict(own.images).logits
            per_domain.append(self.criterion(logits, own.labels, own.domains).mean())
        total = torch.stack(per_domain).mean()
        return StepLoss(total=total, terms={"classification": total.detach()})
