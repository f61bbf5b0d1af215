"""ISDA, implicit semantic data augmentation (Wang et al., NeurIPS 2019): the ancestor of the paper's L_Aug."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveFloat

from ltds.core.config import Settings
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.augmentation import augmented_logits, strength_at
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.methods.base import Method, host_labels_and_domains, labels_and_domains
from ltds.methods.problem import Problem
from ltds.stats.covariance import OnlineCovariance


class IsdaConfig(Settings):
    """Settings of ISDA."""

    criterion: CriterionSettings = criterion_field()
    covariance: Literal["diagonal", "full"] = Field("diagonal", description="form of each class's covariance matrix")
    strength: PositiveFloat = Field(
        7.5, description="lambda_0; the original has 7.5 with a diagonal covariance (ImageNet), 0.5 with a full (CIFAR)"
    )


class Isda(Method):
    """Augment features implicitly: the criterion on z_c + (lambda/2) (w_c - w_y)^T Sigma_y (w_c - w_y).

    This bounds the loss of infinitely many augmented features. Sigma_y is the covariance of the features of class y
    over all domains so far, this batch included, without gradient. lambda = lambda_0 epoch / epochs, epoch from 0.
    """

    Config = IsdaConfig
    config: IsdaConfig

    def __init__(self, config: IsdaConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.criterion = Criterion(config.criterion, self.task)
        full = config.covariance == "full"
        self.covariance = OnlineCovariance(len(self.task.classes), problem.feature_dim, full=full)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        batches = self.by_domain(batch)
        features = torch.cat(self.forward_domains([b.images for b in batches]))
        labels, domains = labels_and_domains(batches)
        host_labels, _ = host_labels_and_domains(batches)
        covariance = self.covariance.updated(features, host_labels)  # the loss uses this batch too, as in the original
        epochs = clock.total / clock.steps_per_epoch
        strength = strength_at(clock.epoch, start=0.0, end=epochs, peak=self.config.strength)
        assert strength is not None
        logits, weight = self.classifier(features), self.classifier.weight
        augmented = augmented_logits(logits, host_labels, weight, covariance.sigma, strength)
        total = self.criterion(augmented, labels, domains, clock.generator("criterion")).mean()
        self.covariance.commit(covariance)
        return StepLoss(total=total, terms={"augmented": total.detach()})
