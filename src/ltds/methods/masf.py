"""MASF, model-agnostic learning of semantic features (Dou et al., NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.class_alignment import class_alignment_loss
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.triplet import semihard_triplet_loss
from ltds.methods.base import Method, weighted
from ltds.nn.inner_step import call_with, clip_gradients, fast_weights, gradients, submodule_weights
from ltds.nn.known_gradient import with_known_gradient
from ltds.nn.metric_net import MetricNet
from ltds.semantics.embeddings import ClassEmbeddings


class MasfConfig(Settings):
    """`alignment` and `triplet` are the weights of the two losses at theta'; a weight of 0 leaves its loss out."""

    criterion: CriterionSettings = CriterionSettings()
    inner_lr: PositiveFloat = 0.1
    clip_norm: PositiveFloat = 2.0
    alignment: NonNegativeFloat = 1.0
    temperature: PositiveFloat = 2.0
    triplet: NonNegativeFloat = 0.005
    margin: PositiveFloat = 10.0
    metric_widths: tuple[PositiveInt, PositiveInt] = (1024, 256)

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> MasfConfig:
        if not self.alignment and not self.triplet:
            raise ValueError("alignment=0 and triplet=0 leave nothing to meta-learn: use the method agg")
        idle = [] if self.alignment else ["temperature"]
        idle += [] if self.triplet else ["margin", "metric_widths"]
        for name in idle:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect beside the other settings: leave it out")
        return self


class Masf(Method):
    """L_task(theta) + w_g L_global(theta') + w_l L_local(theta'), theta' = theta - lr clip(grad L_task), first order.

    METHODS 2.10. One random source is meta-test; L_task is on the others, L_global aligns it with each of them, L_local
    is on all. Each tensor of the gradient is clipped to `clip_norm`: in the inner step, and of L_global + L_local.
    """

    Config = MasfConfig
    config: MasfConfig

    def __init__(
        self,
        config: MasfConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        if len(task.sources) < 2:
            raise ConfigError(
                f"Expected at least 2 source domains for masf, one to hold out in each step, but got "
                f"{len(task.sources)}. Use --method agg."
            )
        self.criterion = Criterion(config.criterion, task)
        self.metric = MetricNet(features, config.metric_widths) if config.triplet else nn.Identity()

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        config, sources = self.config, range(len(self.task.sources))
        own = [batch.of(domain) for domain in sources]
        held = int(torch.randint(len(own), (), generator=clock.generator("split")))
        task = self._task_loss([own[d] for d in sources if d != held], clock)

        theta = {name: p for name, p in self.named_parameters() if p.requires_grad}
        inner = gradients(task, theta)
        fast = fast_weights(theta, inner, config.inner_lr, clip="per_tensor", clip_norm=config.clip_norm)

        terms = self._meta_losses(own, held, fast)
        weights = {"alignment": config.alignment, "triplet": config.triplet}
        meta = weighted(terms, weights)
        outer = clip_gradients(gradients(meta, fast), "per_tensor", config.clip_norm)  # first order: as if by theta
        together = [a + b for a, b in zip(inner, outer, strict=True)]
        total = with_known_gradient(task + meta, list(theta.values()), together)
        return StepLoss(total, {name: value.detach() for name, value in ({"cls": task} | terms).items()})

    def _task_loss(self, parts: Sequence[Batch], clock: Clock) -> Tensor:
        """The mean of the criterion at theta, each domain in its own forward pass."""
        logits = torch.cat([self.classifier(self.backbone(p.images)) for p in parts])
        labels, domains = torch.cat([p.labels for p in parts]), torch.cat([p.domains for p in parts])
        loss: Tensor = self.criterion(logits, labels, domains, clock.generator("criterion")).mean()
        return loss

    def _meta_losses(self, own: Sequence[Batch], held: int, fast: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """L_global, of the domain held out with each other one, and L_local, on all of them, at theta'."""
        terms = {}
        features = [call_with(self.backbone, submodule_weights(fast, "backbone"), p.images) for p in own]
        if self.config.alignment:
            logits = [call_with(self.classifier, submodule_weights(fast, "classifier"), x) for x in features]
            pairs = [
                class_alignment_loss(logits[held], own[held].labels, z, p.labels, temperature=self.config.temperature)
                for domain, (z, p) in enumerate(zip(logits, own, strict=True))
                if domain != held
            ]
            terms["alignment"] = torch.stack(pairs).mean()
        if self.config.triplet:
            embedded = call_with(self.metric, submodule_weights(fast, "metric"), torch.cat(features))
            labels = torch.cat([p.labels for p in own])
            terms["triplet"] = semihard_triplet_loss(embedded, labels, margin=self.config.margin)
        return terms
