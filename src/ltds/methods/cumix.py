"""CuMix (Mancini et al., ECCV 2020): mix images and features, first within a domain, later across domains."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.losses.soft_labels import soft_label_loss
from ltds.methods.base import Method, labels_and_domains, weighted_sum
from ltds.methods.curriculum import MixingPairs, beta_at, draw_pairs, same_domain_probability
from ltds.methods.problem import Problem


class CumixWeights(Settings):
    """Weights of the three losses; 0 leaves a loss out."""

    samples: NonNegativeFloat = Field(3.0, description="w_s: loss of the samples without mixing")
    features: NonNegativeFloat = Field(3.0, description="w_f: loss of mixed features")
    images: NonNegativeFloat = Field(0.1, description="w_i: loss of mixed images")


class CumixConfig(Settings):
    """Settings of CuMix."""

    criterion: CriterionSettings = criterion_field()
    weights: CumixWeights = Field(CumixWeights(), description="weights of the three losses")
    beta_max: PositiveFloat = Field(0.6, description="mixing ratios come from Beta(b, b), where b grows to this value")
    stage: Annotated[float, Field(gt=0, le=1)] = Field(
        1 / 3, description="share of the run in which b grows; in the next such share partners change to other domains"
    )
    semantic_head: bool = Field(
        False, description="classify with a learned projection followed by the fixed class embeddings"
    )

    @model_validator(mode="after")
    def _something_is_mixed(self) -> CumixConfig:
        if not (self.weights.features or self.weights.images):
            raise ValueError("weights.features=0 and weights.images=0 leave nothing to mix: use the method agg")
        return self


class Cumix(Method):
    """Train also on mixed images and mixed features, which cross domains later in the run.

    w_s L(h(f(x)), y) + w_f L(h(mix(f(x))), mix(y)) + w_i L(h(f(mix(x))), mix(y)), each a mean over domains. Every
    forward pass has one domain; a mixed image belongs to the domain of its first image. The mixes of features and of
    images have different partners and ratios. Both features of a mixture get a gradient.
    """

    Config = CumixConfig
    config: CumixConfig
    semantics: Tensor  # s (C,S), unit rows
    is_open: Tensor  # (C,) bool: classes without training images

    def __init__(self, config: CumixConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        task = self.task
        self.criterion = Criterion(config.criterion, task)
        if config.semantic_head:
            self.register_buffer("semantics", problem.class_vectors(task.classes), persistent=False)
            self.register_buffer("is_open", torch.tensor(task.class_counts == 0), persistent=False)
            self.classifier = nn.Linear(problem.feature_dim, self.semantics.shape[1])  # the projection; s follows

    @classmethod
    def uses_embeddings(cls, config: CumixConfig) -> bool:
        return config.semantic_head

    @classmethod
    def min_sources(cls, config: CumixConfig) -> int:
        return 2  # it mixes across domains

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        w, batches = self.config.weights, self.by_domain(batch)
        sizes = [len(b) for b in batches]
        images = torch.cat([b.images for b in batches])
        labels, domains = labels_and_domains(batches)

        terms: dict[str, Tensor] = {}
        if w.samples or w.features:
            features = self._forward(images, sizes)
            if w.samples:
                losses = self.criterion(self._score(features), labels, domains, clock.generator("criterion/samples"))
                terms["samples"] = _mean_over_domains(losses, sizes)
            if w.features:
                pairs = self._pairs("features", sizes, clock)
                losses = self._mixed(pairs, pairs.mix(features), labels, domains, clock.generator("criterion/features"))
                terms["features"] = _mean_over_domains(losses, sizes)
        if w.images:
            pairs = self._pairs("images", sizes, clock)
            features = self._forward(pairs.mix(images), sizes)
            losses = self._mixed(pairs, features, labels, domains, clock.generator("criterion/images"))
            terms["images"] = _mean_over_domains(losses, sizes)
        total = weighted_sum(terms, w.model_dump())
        return StepLoss(total=total, terms={name: term.detach() for name, term in terms.items()})

    def predict(self, images: Tensor) -> Prediction:
        features = self.backbone(images)
        return Prediction(logits=self._classify(features), features=features)

    def project(self, features: Tensor) -> Tensor | None:
        return self.classifier(features) if self.config.semantic_head else None

    def _forward(self, images: Tensor, sizes: list[int]) -> Tensor:
        """f(x) (N,D), each domain in its own forward pass."""
        return torch.cat(self.forward_domains(torch.split(images, sizes)))

    def _classify(self, features: Tensor) -> Tensor:
        """h(f) (N,C): linear, or the inner products of a projection with s."""
        scores: Tensor = self.classifier(features)
        return scores @ self.semantics.T if self.config.semantic_head else scores

    def _score(self, features: Tensor) -> Tensor:
        """h(f) for training. The semantic head trains on the classes with images only; at test all classes compete."""
        logits = self._classify(features)
        return logits.masked_fill(self.is_open, -torch.inf) if self.config.semantic_head else logits

    def _pairs(self, stream: str, sizes: list[int], clock: Clock) -> MixingPairs:
        """Random pairs for this step, from the distributions of this epoch."""
        length = round(self.config.stage * clock.total / clock.steps_per_epoch, 9)  # so that a third of 30 is 10
        concentration = beta_at(clock.epoch, peak=self.config.beta_max, length=length)
        same = same_domain_probability(clock.epoch, length=length)
        return draw_pairs(sizes, concentration, same, clock.generator(f"mix/{stream}"))

    def _mixed(
        self, pairs: MixingPairs, mixed: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator
    ) -> Tensor:
        """(N,) losses of mixed features (N,D), with labels mixed in the same ratios."""
        partner = pairs.partners.to(labels.device)
        return soft_label_loss(
            self.criterion,
            self._score(mixed),
            torch.stack([pairs.ratios, 1 - pairs.ratios], dim=1),
            torch.stack([labels, labels[partner]], dim=1),
            torch.stack([domains, domains[partner]], dim=1),
            generator,
        )


def _mean_over_domains(losses: Tensor, sizes: list[int]) -> Tensor:
    return torch.stack([x.mean() for x in torch.split(losses, sizes)]).mean()
