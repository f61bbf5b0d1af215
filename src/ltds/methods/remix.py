"""Remix (Chou et al., ECCV Workshops 2020): mixup whose labels favour the rarer class."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveFloat, field_validator, model_validator
from torch import Tensor

from ltds.core.config import Fraction, Settings, refuse_idle
from ltds.core.devices import widest_float
from ltds.core.distributions import beta
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.losses.soft_labels import soft_label_loss
from ltds.methods.base import Method
from ltds.methods.problem import Problem


class RemixConfig(Settings):
    """Settings of Remix."""

    criterion: CriterionSettings = criterion_field()
    alpha: PositiveFloat = Field(1.0, description="images are mixed in the ratio lambda ~ Beta(alpha, alpha)")
    kappa: float = Field(
        3.0, description="from this ratio of class counts on, the rarer class may get the whole label; at least 1"
    )
    tau: Fraction = Field(
        0.5, description="the rarer class gets the whole label if it has more than 1 - tau of the image; 0: plain mixup"
    )

    @field_validator("kappa")
    @classmethod
    def _a_ratio_of_larger_to_smaller(cls, kappa: float) -> float:
        if kappa < 1:
            raise ValueError("it is the ratio of a larger class to a smaller one, so it must be at least 1")
        return kappa

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> RemixConfig:
        if self.tau == 0:
            refuse_idle(self, ["kappa"], "with tau=0 (plain mixup)")
        return self


class Remix(Method):
    """Mix images of all domains; the label favours the rarer class.

    The loss is the mean over the batch of lambda_y criterion(z(x~), y_i) + (1 - lambda_y) criterion(z(x~), y_j). The
    batches of the source domains are pooled and mixed across domains, in one forward pass: BatchNorm sees mixed images.
    """

    Config = RemixConfig
    config: RemixConfig
    mixes_domains = True
    class_counts: Tensor  # (C,) n_c over all sources

    def __init__(self, config: RemixConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.criterion = Criterion(config.criterion, self.task)
        self.register_buffer("class_counts", torch.tensor(self.task.class_counts), persistent=False)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        generator = clock.generator("mix")
        share = float(beta(self.config.alpha, self.config.alpha, (), generator))
        partner = torch.randperm(len(batch), generator=generator).to(batch.labels.device)
        mixed = share * batch.images + (1 - share) * batch.images[partner]

        labels = torch.stack([batch.labels, batch.labels[partner]], dim=1)
        domains = torch.stack([batch.domains, batch.domains[partner]], dim=1)
        n_i, n_j = self.class_counts[labels].unbind(dim=1)
        first = label_share(share, n_i, n_j, kappa=self.config.kappa, tau=self.config.tau)
        total = soft_label_loss(
            self.criterion,
            self.predict(mixed).logits,
            torch.stack([first, 1 - first], dim=1),
            labels,
            domains,
            clock.generator("criterion/mixed"),
        ).mean()
        return StepLoss(total=total, terms={"classification": total.detach()})


def label_share(share: float, n_i: Tensor, n_j: Tensor, *, kappa: float, tau: float) -> Tensor:
    """lambda_y (N,): the share of the label for class i, when the image holds `share` = lambda of it.

    0 if n_i / n_j >= kappa and lambda < tau; 1 if n_i / n_j <= 1 / kappa and 1 - lambda < tau; else lambda.
    n_i, n_j (N,): training images of the two classes.
    """
    n_i, n_j = (n.to(widest_float(n.device)) for n in (n_i, n_j))
    to_j = (n_i >= kappa * n_j) & (share < tau)
    to_i = (n_i * kappa <= n_j) & (1 - share < tau)
    plain = torch.full_like(n_i, share)
    return plain.masked_fill(to_i, 1.0).masked_fill(to_j, 0.0)
