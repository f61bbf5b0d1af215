"""Agg: train on all source domains together, with a criterion of choice; MixStyle and class embeddings are options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor

from ltds.core.config import Settings, refuse_idle
from ltds.core.errors import ConfigError
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.adjustment import adjusted_after_training
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.methods.base import Method
from ltds.methods.problem import Problem
from ltds.nn.mixstyle import MixStyle, MixStyleSettings
from ltds.nn.projector import Projector


class AggConfig(Settings):
    """Settings of Agg and of the methods that are Agg with other settings."""

    criterion: CriterionSettings = criterion_field()
    posthoc_tau: NonNegativeFloat = Field(0.0, description="predict with logits - tau * log class prior; 0: off")
    mixstyle: MixStyleSettings = Field(MixStyleSettings(), description="mixing of feature statistics in training")
    joint_forward: bool = Field(False, description="all domains in one forward pass, so BatchNorm sees them mixed")
    z2s: NonNegativeFloat = Field(0.0, description="weight of the loss L_z2s, which needs class embeddings; 0: off")
    margin: NonNegativeFloat = Field(0.1, description="margin of L_z2s, alpha in the paper")
    temperature: PositiveFloat = Field(1 / 30, description="temperature of L_z2s, tau in the paper")

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> AggConfig:
        if self.posthoc_tau and self.criterion.name != "ce":
            raise ValueError(
                f"posthoc_tau with criterion '{self.criterion.name}' is doing both forms of adjustment, in the loss "
                "and after training: set posthoc_tau=0, or criterion=ce"
            )
        if self.mixstyle.p:
            refuse_idle(self, ["joint_forward"], "with MixStyle, which always takes all domains in one pass")
        if not self.z2s:
            refuse_idle(self, ["margin", "temperature"], "without the semantic loss (z2s=0)")
        return self


class Agg(Method):
    """Train one network on all source domains: the mean over domains of criterion(h(f(x)), y) + w L_z2s(e(f(x)), y).

    Each domain has its own forward pass, so that BatchNorm sees one domain at a time. With MixStyle all domains are in
    one pass, because it mixes them.
    """

    Config = AggConfig
    config: AggConfig
    class_counts: Tensor  # (C,) training images of each class, all sources together
    semantics: Tensor  # s (C,S), unit rows

    def __init__(self, config: AggConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        task = self.task
        if config.posthoc_tau and not task.counts.any():
            raise ConfigError(
                "Expected class counts for method.posthoc_tau, but no source domain has training images. "
                "Add training images, or set method.posthoc_tau=0."
            )
        self.mixes_domains = config.joint_forward or config.mixstyle.p > 0
        self.criterion = Criterion(config.criterion, task)
        self.mixstyle = MixStyle(config.mixstyle, self.backbone) if config.mixstyle.p else None
        self.register_buffer("class_counts", torch.tensor(task.class_counts), persistent=False)
        if config.z2s:
            self.register_buffer("semantics", problem.class_vectors(task.classes), persistent=False)
            self.to_semantic = Projector(problem.feature_dim, self.semantics.shape[1])

    @classmethod
    def uses_embeddings(cls, config: AggConfig) -> bool:
        return config.z2s > 0

    @classmethod
    def min_sources(cls, config: AggConfig) -> int:
        return 2 if config.mixstyle.p else 1  # MixStyle mixes the statistics of different domains

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        terms: dict[str, list[Tensor]] = {"classification": [], "z2s": []}
        domains = self.by_domain(batch)
        for i, (samples, features) in enumerate(zip(domains, self._features(domains, clock), strict=True)):
            generator = clock.generator(f"criterion/{i}")
            logits = self.classifier(features)
            terms["classification"].append(self.criterion(logits, samples.labels, samples.domains, generator).mean())
            if self.config.z2s:
                terms["z2s"].append(self._to_semantics(features, samples.labels))
        means = {name: torch.stack(values).mean() for name, values in terms.items() if values}
        total = means["classification"] + self.config.z2s * means["z2s"] if self.config.z2s else means["classification"]
        return StepLoss(total=total, terms={name: value.detach() for name, value in means.items()})

    def _features(self, domains: list[Batch], clock: Clock) -> list[Tensor]:
        """f(x) of each source domain, (N_d,D)."""
        images = [d.images for d in domains]
        if self.mixstyle is None:
            return self.forward_domains(images, joint=self.config.joint_forward)
        host_domains = torch.from_numpy(np.concatenate([d.host_domains for d in domains]))
        with self.mixstyle.mixing(host_domains, clock.generator("mixstyle")):
            return self.forward_domains(images, joint=True)

    def _to_semantics(self, features: Tensor, labels: Tensor) -> Tensor:
        """The mean of L_z2s, Eq. (3) of Gu et al., without class counts. Prediction does not use the projector e."""
        margin, temperature = self.config.margin, self.config.temperature
        projected = self.to_semantic(features)
        return visual_to_semantic_loss(projected, labels, self.semantics, margin=margin, temperature=temperature).mean()

    def project(self, features: Tensor) -> Tensor | None:
        return self.to_semantic(features) if self.config.z2s else None

    def diagnostics(self, features: Tensor) -> dict[str, Tensor]:
        projected = self.project(features)
        if projected is None:
            return {}
        return {"projected": projected, "embeddings": self.semantics @ self.semantics.T}

    def predict(self, images: Tensor) -> Prediction:
        prediction = super().predict(images)
        if not self.config.posthoc_tau:
            return prediction
        adjusted = adjusted_after_training(prediction.logits, self.class_counts, self.config.posthoc_tau)
        return replace(prediction, logits=adjusted)
