"""MASF, model-agnostic learning of semantic features (Dou et al., NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings, refuse_idle
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.class_alignment import class_alignment_loss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.losses.triplet import semihard_triplet_loss
from ltds.methods.base import Method, labels_and_domains, weighted_sum
from ltds.methods.problem import Problem
from ltds.nn.inner_step import call_with, clip_gradients, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.metric_net import MetricNet


class MasfConfig(Settings):
    """Settings of MASF."""

    criterion: CriterionSettings = criterion_field()
    inner_lr: PositiveFloat = Field(0.1, description="step size of the inner step to theta'")
    clip_norm: PositiveFloat = Field(2.0, description="largest norm of each tensor of the gradients")
    alignment: NonNegativeFloat = Field(1.0, description="weight w_g of the class alignment loss L_global; 0: left out")
    temperature: PositiveFloat = Field(2.0, description="temperature of the class alignment loss")
    triplet: NonNegativeFloat = Field(0.005, description="weight w_l of the triplet loss L_local; 0: left out")
    margin: PositiveFloat = Field(10.0, description="margin of the triplet loss")
    metric_widths: tuple[PositiveInt, PositiveInt] = Field(
        (1024, 256), description="widths of the two layers that embed features for the triplet loss"
    )

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MasfConfig:
        if not self.alignment and not self.triplet:
            raise ValueError("alignment=0 and triplet=0 leave nothing to meta-learn: use the method agg")
        if not self.alignment:
            refuse_idle(self, ["temperature"], "with alignment=0")
        if not self.triplet:
            refuse_idle(self, ["margin", "metric_widths"], "with triplet=0")
        return self


class Masf(Method):
    """Meta-learning in which, after a step on all domains but one, classes must agree over domains and form clusters.

    L_task(theta) + w_g L_global(theta') + w_l L_local(theta'), theta' = theta - lr clip(grad L_task), first order. One
    random source is meta-test: L_task is on the others, L_global aligns it with each of them, L_local is on all. Each
    tensor of the gradient of L_task (inner step) and of the meta losses is clipped to `clip_norm`.
    """

    Config = MasfConfig
    config: MasfConfig

    def __init__(self, config: MasfConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.criterion = Criterion(config.criterion, self.task)
        self.metric = MetricNet(problem.feature_dim, config.metric_widths) if config.triplet else nn.Identity()

    @classmethod
    def min_sources(cls, config: MasfConfig) -> int:
        return 2  # each step holds one out for meta-test

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        config, domains = self.config, self.by_domain(batch)
        held_out = int(torch.randint(len(domains), (), generator=clock.generator("split")))
        task = self._task_loss([x for d, x in enumerate(domains) if d != held_out], clock)

        theta = self.trainable_parameters()
        inner = gradients(task, theta)
        fast = fast_weights(theta, inner, config.inner_lr, clip="per_tensor", clip_norm=config.clip_norm)

        terms = self._meta_losses(domains, held_out, fast)
        weights = {"alignment": config.alignment, "triplet": config.triplet}
        meta = weighted_sum(terms, weights)
        outer = clip_gradients(gradients(meta, fast), "per_tensor", config.clip_norm)  # first order: as if by theta
        together = [a + b for a, b in zip(inner, outer, strict=True)]
        total = with_known_gradient(task + meta, list(theta.values()), together)
        return StepLoss(total, {name: value.detach() for name, value in ({"cls": task} | terms).items()})

    def _task_loss(self, batches: Sequence[Batch], clock: Clock) -> Tensor:
        """The mean of the criterion at theta, BatchNorm seeing one domain at a time."""
        logits = self.classifier(torch.cat(self.forward_domains([b.images for b in batches])))
        labels, domains = labels_and_domains(batches)
        loss: Tensor = self.criterion(logits, labels, domains, clock.generator("criterion")).mean()
        return loss

    def _meta_losses(self, batches: Sequence[Batch], held_out: int, fast: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """At theta': L_global between the held-out domain and each other domain, and L_local on all domains."""
        terms = {}
        f = partial(call_with, self.backbone, submodule_weights(fast, "backbone"))
        features = self.forward_domains([b.images for b in batches], f)
        if self.config.alignment:
            logits = [call_with(self.classifier, submodule_weights(fast, "classifier"), x) for x in features]
            host_labels = [torch.from_numpy(b.host_labels) for b in batches]
            pairs = [
                class_alignment_loss(logits[held_out], host_labels[held_out], z, y, temperature=self.config.temperature)
                for domain, (z, y) in enumerate(zip(logits, host_labels, strict=True))
                if domain != held_out
            ]
            terms["alignment"] = torch.stack(pairs).mean()
        if self.config.triplet:
            embedded = call_with(self.metric, submodule_weights(fast, "metric"), torch.cat(features))
            labels = torch.cat([b.labels for b in batches])
            terms["triplet"] = semihard_triplet_loss(embedded, labels, margin=self.config.margin)
        return terms
