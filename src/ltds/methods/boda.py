"""BoDA, balanced domain-class alignment (Yang et al., ECCV 2022): long tails in several domains."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ltds.core.config import Settings, ShareBelowOne, refuse_idle
from ltds.core.types import Batch, Clock, StepLoss, first_step_after
from ltds.losses.balanced_alignment import balanced_alignment_loss, moment_alignment_loss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.methods.base import Method, Phase, labels_and_domains, weighted_sum
from ltds.methods.crt import HEAD_PHASES
from ltds.methods.problem import Problem
from ltds.stats.centroids import PairCentroids


class BodaConfig(Settings):
    """Settings of BoDA."""

    criterion: CriterionSettings = criterion_field()
    alignment: NonNegativeFloat = Field(0.1, description="weight of the loss between images and centroids; 0: left out")
    moments: NonNegativeFloat = Field(1.0, description="weight of the loss between the moments of domains; 0: left out")
    nu: NonNegativeFloat = Field(0.5, description="power of the ratio of two pairs' image counts")
    temperature: PositiveFloat = Field(1.0, description="temperature of the loss between images and centroids")
    start: ShareBelowOne = Field(0.1, description="share of the run before the first centroids")
    refresh_epochs: PositiveInt = Field(1, description="epochs from one computation of the centroids to the next")
    momentum: ShareBelowOne = Field(0.2, description="share of the old centroids in the new ones")
    retrain_classifier: bool = Field(False, description="afterwards a new classifier on balanced classes, as in crt")

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> BodaConfig:
        if not self.alignment and not self.moments:
            raise ValueError("alignment=0 and moments=0 leave only the classification loss: use the method agg")
        if not self.alignment:
            idle = ["nu", "temperature", "start", "refresh_epochs", "momentum"]
            refuse_idle(self, idle, "with alignment=0")
        return self


class Boda(Method):
    """The criterion, while an image is pulled to its class in other domains, as much as the counts of both allow.

    L_cls + w_a L_BoDA(f(x), centroids) + w_m L_moments(f(x)). The centroids are the mean features of all pairs with
    training images, computed from all of them every `refresh_epochs` epochs.
    """

    Config = BodaConfig
    config: BodaConfig
    counts: Tensor  # n_c^d (K,C)

    def __init__(self, config: BodaConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.criterion = Criterion(config.criterion, self.task)
        self.register_buffer("counts", torch.tensor(self.task.counts), persistent=False)
        if config.alignment:
            self.centroids = PairCentroids(self.task.counts, problem.feature_dim, momentum=config.momentum)

    @classmethod
    def min_sources(cls, config: BodaConfig) -> int:
        return 2  # there is nothing to align in one

    @classmethod
    def begins_as(cls, config: BodaConfig) -> tuple[type[Method], Settings] | None:
        return (Boda, config.model_copy(update={"retrain_classifier": False})) if config.retrain_classifier else None

    def phases(self) -> tuple[Phase, ...]:
        return (Phase(), HEAD_PHASES["crt"]) if self.config.retrain_classifier else (Phase(),)

    def start_phase(self, phase: Phase) -> None:
        self.classifier.reset_parameters()

    def fits_before(self, clock: Clock) -> bool:
        since = clock.step - self._first_aligned(clock)
        return self._aligns(clock) and since % (self.config.refresh_epochs * clock.steps_per_epoch) == 0

    def fit_in_training(self, training: Iterable[Batch]) -> None:
        samples = ((self.backbone(b.images), b.host_labels, b.host_domains) for b in training)
        self.centroids.commit(self.centroids.means(samples))

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        if clock.phase != "main":
            return self._classifier_loss(batch)
        batches = self.by_domain(batch)
        features = self.forward_domains([b.images for b in batches])
        classification = [
            self.criterion(self.classifier(x), b.labels, b.domains, clock.generator(f"criterion/{i}")).mean()
            for i, (b, x) in enumerate(zip(batches, features, strict=True))
        ]
        terms = {"classification": torch.stack(classification).mean()}
        if self.config.moments:
            terms["moments"] = moment_alignment_loss(features)
        if self._aligns(clock):
            terms["alignment"] = self._align(torch.cat(features), *labels_and_domains(batches))
        weights = {"classification": 1.0, "moments": self.config.moments, "alignment": self.config.alignment}
        return StepLoss(weighted_sum(terms, weights), {name: value.detach() for name, value in terms.items()})

    def training_passes(self, batch: Batch, phase: Phase) -> list[Tensor]:
        return super().training_passes(batch, phase) if phase.name == "main" else []  # the backbone is as it was

    def _first_aligned(self, clock: Clock) -> int:
        """The first step with centroids."""
        return first_step_after(self.config.start, clock.total)

    def _aligns(self, clock: Clock) -> bool:
        return self.config.alignment > 0 and clock.phase == "main" and clock.step >= self._first_aligned(clock)

    def _align(self, features: Tensor, labels: Tensor, domains: Tensor) -> Tensor:
        pairs = self.centroids
        return balanced_alignment_loss(
            features,
            labels,
            domains,
            pairs.value,
            pairs.labels,
            pairs.domains,
            self.counts,
            nu=self.config.nu,
            temperature=self.config.temperature,
        )

    def _classifier_loss(self, batch: Batch) -> StepLoss:
        """Cross-entropy of the new classifier on the features of the trained backbone, which stays as it is."""
        self.backbone.eval()
        with torch.no_grad():
            features = self.backbone(batch.images)
        total = F.cross_entropy(self.classifier(features), batch.labels)
        return StepLoss(total, {"classification": total.detach()})
