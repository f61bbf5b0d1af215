"""ISDA, implicit semantic data augmentation (Wang et al., NeurIPS 2019): the ancestor of the paper's L_Aug."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import nn

from ltds.core.config import Settings
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.augmentation import augmented_logits, strength_at
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.methods.base import Method
from ltds.semantics.embeddings import ClassEmbeddings
from ltds.stats.covariance import OnlineCovariance


class IsdaConfig(Settings):
    """`strength` is lambda_0: in the original 7.5 with a diagonal covariance (ImageNet), .5 with a full one (CIFAR)."""

    criterion: CriterionSettings = CriterionSettings()
    covariance: Literal["diagonal", "full"] = "diagonal"
    strength: PositiveFloat = 7.5


class Isda(Method):
    """The criterion on z_c + (lambda/2) (w_c - w_y)^T Sigma_y (w_c - w_y), a bound of the loss of all augmentations.

    Sigma_y is the covariance of the features of class y over all domains so far, this batch included; a constant.
    lambda = lambda_0 epoch / epochs, epoch from 0. METHODS 2.9.
    """

    Config = IsdaConfig
    config: IsdaConfig

    def __init__(
        self,
        config: IsdaConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        self.criterion = Criterion(config.criterion, task)
        self.spread = OnlineCovariance(len(task.classes), features, full=config.covariance == "full")

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        parts = [batch.of(domain) for domain in range(len(self.task.sources))]
        features = torch.cat([self.backbone(part.images) for part in parts])
        labels, domains = torch.cat([p.labels for p in parts]), torch.cat([p.domains for p in parts])
        covariance = self.spread.updated(features, labels)  # the loss sees this batch too, as in the original
        epochs = clock.total / clock.steps_per_epoch
        strength = strength_at(clock.epoch, start=0.0, end=epochs, peak=self.config.strength)
        assert strength is not None
        logits, weight = self.classifier(features), self.classifier.weight
        augmented = augmented_logits(logits, labels, weight, covariance.sigma, strength)
        total = self.criterion(augmented, labels, domains, clock.generator("criterion")).mean()
        self.spread.commit(covariance)
        return StepLoss(total=total, terms={"augmented": total.detach()})
