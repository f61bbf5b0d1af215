"""CuMix: mix images and features, first within a domain, later across domains."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.soft_labels import soft_label_loss
from ltds.methods.base import Method, weighted
from ltds.methods.curriculum import Pairs, beta_at, draw_pairs, same_domain_probability
from ltds.semantics.embeddings import ClassEmbeddings


class CumixWeights(Settings):
    """w_s, w_f, w_i: of the samples as they are, of mixed features, of mixed images. 0 leaves its term out."""

    samples: NonNegativeFloat = 3.0
    features: NonNegativeFloat = 3.0
    images: NonNegativeFloat = 0.1


class CumixConfig(Settings):
    """`beta_max`: mixing ratios come from Beta(b, b), where b grows to this. `stage`: N as a share of the run; b grows
    in the first stage, partners move over to other domains in the second. `semantic_head`: the classifier is a learned
    projection followed by the fixed class embeddings.
    """

    criterion: CriterionSettings = CriterionSettings()
    weights: CumixWeights = CumixWeights()
    beta_max: PositiveFloat = 0.6
    stage: Annotated[float, Field(gt=0, le=1)] = 1 / 3
    semantic_head: bool = False

    @model_validator(mode="after")
    def _something_is_mixed(self) -> CumixConfig:
        if not (self.weights.features or self.weights.images):
            raise ValueError("weights.features=0 and weights.images=0 leave nothing to mix: use method.name=agg")
        return self


class Cumix(Method):
    """w_s L(h(f(x)), y) + w_f L(h(mix(f(x))), mix(y)) + w_i L(h(f(mix(x))), mix(y)), means over domains.

    Reading: every forward pass is of one domain's samples; a mixed image goes with the domain of its first part. The
    two mixes have partners and ratios of their own; gradient flows into both parts of a mixed feature.
    """

    Config = CumixConfig
    config: CumixConfig
    semantics: Tensor  # s (C,S), unit rows
    unseen: Tensor  # (C,) bool: classes without images

    def __init__(
        self,
        config: CumixConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        if len(task.sources) < 2:
            raise ConfigError(
                f"Expected at least two source domains for CuMix, which mixes across domains, but got only "
                f"'{task.sources[0]}'. Add a domain to the dataset, or train with method.name=remix."
            )
        self.criterion = Criterion(config.criterion, task)
        if config.semantic_head:
            assert embeddings is not None, "the engine gives embeddings to a method that uses them"
            self.classifier = nn.Linear(features, embeddings.width)  # the projection; s follows
            self.register_buffer("semantics", embeddings.aligned_to(task.classes).vectors, persistent=False)
            self.register_buffer("unseen", torch.tensor(task.class_counts == 0), persistent=False)

    @classmethod
    def uses_embeddings(cls, config: CumixConfig) -> bool:
        return config.semantic_head

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        w, groups = self.config.weights, [batch.of(d) for d in range(len(self.task.sources))]
        sizes = [len(group) for group in groups]
        images = torch.cat([group.images for group in groups])
        labels, domains = torch.cat([g.labels for g in groups]), torch.cat([g.domains for g in groups])

        terms: dict[str, Tensor] = {}
        if w.samples or w.features:
            features = self._look(images, sizes)
            if w.samples:
                losses = self.criterion(self._score(features), labels, domains, clock.generator("criterion/samples"))
                terms["samples"] = _mean_over_domains(losses, sizes)
            if w.features:
                pairs = self._pairs("features", sizes, clock)
                losses = self._mixed(pairs, pairs.mix(features), labels, domains, clock.generator("criterion/features"))
                terms["features"] = _mean_over_domains(losses, sizes)
        if w.images:
            pairs = self._pairs("images", sizes, clock)
            features = self._look(pairs.mix(images), sizes)
            losses = self._mixed(pairs, features, labels, domains, clock.generator("criterion/images"))
            terms["images"] = _mean_over_domains(losses, sizes)
        total = weighted(terms, w.model_dump())
        return StepLoss(total=total, terms={name: term.detach() for name, term in terms.items()})

    def predict(self, images: Tensor) -> Prediction:
        features = self.backbone(images)
        return Prediction(logits=self._classify(features), features=features)

    def _look(self, images: Tensor, sizes: list[int]) -> Tensor:
        """f(x) (N,D), each domain in its own forward pass."""
        return torch.cat([self.backbone(part) for part in torch.split(images, sizes)])

    def _classify(self, features: Tensor) -> Tensor:
        """h(f) (N,C): linear, or the inner products of a projection with s."""
        scores: Tensor = self.classifier(features)
        return scores @ self.semantics.T if self.config.semantic_head else scores

    def _score(self, features: Tensor) -> Tensor:
        """h(f) for training. The semantic head is trained among classes with images; at test all of them compete."""
        logits = self._classify(features)
        return logits.masked_fill(self.unseen, -torch.inf) if self.config.semantic_head else logits

    def _pairs(self, stream: str, sizes: list[int], clock: Clock) -> Pairs:
        """This epoch's law, this step's draws."""
        length = round(self.config.stage * clock.total / clock.steps_per_epoch, 9)  # a third of 30 epochs is 10
        concentration = beta_at(clock.epoch, peak=self.config.beta_max, length=length)
        same = same_domain_probability(clock.epoch, length=length)
        return draw_pairs(sizes, concentration, same, clock.generator(f"mix/{stream}"))

    def _mixed(
        self, pairs: Pairs, mixed: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator
    ) -> Tensor:
        """(N,) losses of mixed features (N,D), with labels mixed as they were."""
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
    return torch.stack([part.mean() for part in torch.split(losses, sizes)]).mean()
