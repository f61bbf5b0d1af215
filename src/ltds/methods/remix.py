"""Remix: mixup whose labels lean to the rarer class."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, field_validator, model_validator
from torch import Tensor, nn

from ltds.core.config import Fraction, Settings
from ltds.core.draws import beta
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.soft_labels import soft_label_loss
from ltds.methods.base import Method
from ltds.semantics.embeddings import ClassEmbeddings


class RemixConfig(Settings):
    """`alpha`: images mix by lambda ~ Beta(alpha, alpha). `kappa`: from this ratio of class sizes on, the rarer class
    gets the whole label, where it has more than 1 - `tau` of the image; tau=0 is mixup.
    """

    criterion: CriterionSettings = CriterionSettings()
    alpha: PositiveFloat = 1.0
    kappa: float = 3.0
    tau: Fraction = 0.5

    @field_validator("kappa")
    @classmethod
    def _a_ratio_of_larger_to_smaller(cls, kappa: float) -> float:
        if kappa < 1:
            raise ValueError("it is the ratio of a larger class to a smaller one, so it must be at least 1")
        return kappa

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> RemixConfig:
        if self.tau == 0 and self.kappa != type(self).model_fields["kappa"].default:
            raise ValueError("kappa has no effect beside tau=0 (plain mixup): leave it out")
        return self


class Remix(Method):
    """mean over the pooled batch of lambda_y criterion(z(x~), y_i) + (1 - lambda_y) criterion(z(x~), y_j).

    Reading: the sources' batches are pooled and mixed across domains, in one forward pass: BatchNorm sees mixed images.
    """

    Config = RemixConfig
    config: RemixConfig
    class_sizes: Tensor  # (C,) n_c over all sources

    def __init__(
        self,
        config: RemixConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        self.criterion = Criterion(config.criterion, task)
        self.register_buffer("class_sizes", torch.tensor(task.class_counts), persistent=False)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        draws = clock.generator("mix")
        share = float(beta(self.config.alpha, self.config.alpha, (), draws))
        partner = torch.randperm(len(batch), generator=draws).to(batch.labels.device)
        mixed = share * batch.images + (1 - share) * batch.images[partner]

        labels = torch.stack([batch.labels, batch.labels[partner]], dim=1)
        domains = torch.stack([batch.domains, batch.domains[partner]], dim=1)
        sizes = self.class_sizes[labels]
        own = label_share(share, sizes[:, 0], sizes[:, 1], kappa=self.config.kappa, tau=self.config.tau)
        total = soft_label_loss(
            self.criterion,
            self.predict(mixed).logits,
            torch.stack([own, 1 - own], dim=1),
            labels,
            domains,
            clock.generator("criterion/mixed"),
        ).mean()
        return StepLoss(total=total, terms={"classification": total.detach()})


def label_share(share: float, n_i: Tensor, n_j: Tensor, *, kappa: float, tau: float) -> Tensor:
    """lambda_y (N,) in float64: the part of the label that goes to class i, of which the image has `share` = lambda.

    0 if n_i / n_j >= kappa and lambda < tau; 1 if n_i / n_j <= 1 / kappa and 1 - lambda < tau; else lambda.
    n_i, n_j (N,): images of the two classes.
    """
    n_i, n_j = n_i.double(), n_j.double()
    to_j = (n_i >= kappa * n_j) & (share < tau)
    to_i = (n_i * kappa <= n_j) & (1 - share < tau)
    plain = torch.full_like(n_i, share)
    return plain.masked_fill(to_i, 1.0).masked_fill(to_j, 0.0)
