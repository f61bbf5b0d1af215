"""Agg: all source domains together, with a criterion of choice; MixStyle and class embeddings are options."""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.adjustment import adjusted_after_training
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.methods.base import Method, seen_by
from ltds.nn.mixstyle import MixStyle, MixStyleSettings
from ltds.nn.projector import Projector
from ltds.semantics.embeddings import ClassEmbeddings


class AggConfig(Settings):
    """`criterion`: a name (ce, bsce, dc, equal, adjusted) or a group with its settings.

    `posthoc_tau`: predict with z - tau log prior (0: off). `z2s`: the weight of L_z2s, which needs class embeddings (0:
    off), with its `margin` and `temperature`. `joint_forward`: all domains in one pass, so BatchNorm sees them mixed.
    """

    criterion: CriterionSettings = CriterionSettings()
    posthoc_tau: NonNegativeFloat = 0.0
    mixstyle: MixStyleSettings = MixStyleSettings()
    joint_forward: bool = False
    z2s: NonNegativeFloat = 0.0
    margin: NonNegativeFloat = 0.1
    temperature: PositiveFloat = 1 / 30

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> AggConfig:
        if self.posthoc_tau and self.criterion.name != "ce":
            raise ValueError(
                f"posthoc_tau with criterion '{self.criterion.name}' is doing both forms of adjustment, in the loss "
                "and after training: set posthoc_tau=0, or criterion=ce"
            )
        if self.joint_forward and self.mixstyle.p:
            raise ValueError("joint_forward has no effect with MixStyle, which always takes all domains in one pass")
        fields = type(self).model_fields
        for name in ("margin", "temperature"):
            if not self.z2s and getattr(self, name) != fields[name].default:
                raise ValueError(f"{name} has no effect without the semantic loss: set z2s=0.1, or leave it out")
        return self


class Agg(Method):
    """mean over source domains of criterion(h(f(x)), y) + w L_z2s(e(f(x)), y), each domain in its own forward pass.

    METHODS 0.3: BatchNorm sees one domain at a time; with MixStyle all domains at once, to mix them (METHODS 2.6), and
    by option without it.
    """

    Config = AggConfig
    config: AggConfig
    class_counts: Tensor  # (C,) of all sources together
    semantics: Tensor  # s (C,S), unit rows

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
        self.mixstyle = MixStyle(config.mixstyle, backbone) if config.mixstyle.p else None
        self._check_sources()
        self.register_buffer("class_counts", torch.tensor(task.class_counts), persistent=False)
        if config.z2s:
            assert embeddings is not None, "Agg.uses_embeddings said that these settings need them"
            self.register_buffer("semantics", embeddings.aligned_to(task.classes).vectors, persistent=False)
            self.to_semantic = Projector(features, embeddings.width)

    @classmethod
    def uses_embeddings(cls, config: AggConfig) -> bool:
        return config.z2s > 0

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        terms: dict[str, list[Tensor]] = {"classification": [], "z2s": []}
        for domain, features in enumerate(self._features(batch, clock)):
            own, draws = batch.of(domain), clock.generator(f"criterion/{domain}")
            logits = self.classifier(features)
            terms["classification"].append(self.criterion(logits, own.labels, own.domains, draws).mean())
            if self.config.z2s:
                terms["z2s"].append(self._to_semantics(features, own.labels))
        means = {name: torch.stack(values).mean() for name, values in terms.items() if values}
        total = means["classification"] + self.config.z2s * means["z2s"] if self.config.z2s else means["classification"]
        return StepLoss(total=total, terms={name: value.detach() for name, value in means.items()})

    def _features(self, batch: Batch, clock: Clock) -> list[Tensor]:
        """f(x) of each source domain, (N_d,D)."""
        parts = [batch.of(domain) for domain in range(len(self.task.sources))]
        if self.mixstyle is None:
            return seen_by(self.backbone, parts, joint=self.config.joint_forward)
        with self.mixstyle.mixing(torch.cat([own.domains for own in parts]), clock.generator("mixstyle")):
            return seen_by(self.backbone, parts, joint=True)

    def _to_semantics(self, features: Tensor, labels: Tensor) -> Tensor:
        """The mean of L_z2s, Eq. (3), without counts. The projector e has no part in prediction."""
        margin, temperature = self.config.margin, self.config.temperature
        projected = self.to_semantic(features)
        return visual_to_semantic_loss(projected, labels, self.semantics, margin=margin, temperature=temperature).mean()

    def views(self, features: Tensor) -> dict[str, Tensor]:
        if not self.config.z2s:
            return {}
        return {"projected": self.to_semantic(features), "embeddings": self.semantics @ self.semantics.T}

    def predict(self, images: Tensor) -> Prediction:
        prediction = super().predict(images)
        if not self.config.posthoc_tau:
            return prediction
        adjusted = adjusted_after_training(prediction.logits, self.class_counts, self.config.posthoc_tau)
        return replace(prediction, logits=adjusted)

    def _check_sources(self) -> None:
        if self.mixstyle and len(self.task.sources) < 2:
            raise ConfigError(
                f"Expected two source domains or more for MixStyle, but there is only '{self.task.sources[0]}'. "
                "Add a domain to the dataset, or set method.mixstyle.p=0."
            )
        if self.config.posthoc_tau and not self.task.counts.any():
            raise ConfigError(
                "Expected class counts for method.posthoc_tau, but no source domain has training images. "
                "Add training images, or set method.posthoc_tau=0."
            )
