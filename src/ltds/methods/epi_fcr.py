"""Epi-FCR, episodic training (Li et al., ICCV 2019): backbone and classifier learn to work with foreign partners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from pydantic import Field, NonNegativeFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Fraction, Settings
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings, criterion_field
from ltds.methods.base import Method
from ltds.methods.problem import Problem
from ltds.nn.networks import DomainNetwork, new_domain_network

MeanLoss = Callable[[str, Tensor, Batch], Tensor]  # of (random stream, logits, samples)


class EpisodeWeights(Settings):
    """Weights of the episode losses; 0 leaves a term out."""

    feature: NonNegativeFloat = Field(2.0, description="w_f: the backbone with the classifier of another domain")
    classifier: NonNegativeFloat = Field(0.05, description="w_c: the classifier with the backbone of another domain")
    random: NonNegativeFloat = Field(0.1, description="w_r: the backbone with a fixed random classifier")


class EpiFcrConfig(Settings):
    """Settings of Epi-FCR."""

    criterion: CriterionSettings = criterion_field()
    weights: EpisodeWeights = Field(EpisodeWeights(), description="weights of the episode losses")
    average_domains: bool = Field(
        True, description="divide the losses of f and h by the number of domains; false: sums, as in the original"
    )
    warmup: Fraction = Field(
        0.16, description="share of the run at its start in which each network is trained without partners"
    )

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> EpiFcrConfig:
        w = self.weights
        if not (w.feature or w.classifier or w.random):
            raise ValueError("weights that are all 0 leave no episode, only costly domain networks: use the method agg")
        if self.warmup == 1:
            raise ValueError("warmup=1 leaves no episode, only costly domain networks: use the method agg")
        return self


class EpiFcr(Method):
    """Train backbone f and classifier h also in episodes: f with a foreign classifier, h with a foreign backbone.

    f and h are the final model. Each source domain n has its own f_n and h_n, and h_r is random and never trained.
    """

    Config = EpiFcrConfig
    config: EpiFcrConfig

    def __init__(self, config: EpiFcrConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        task, backbone = self.task, self.backbone
        self.criterion = Criterion(config.criterion, task)
        self.domain_networks = nn.ModuleList(new_domain_network(backbone, self.classifier) for _ in task.sources)
        self.random = nn.Linear(problem.feature_dim, len(task.classes)).requires_grad_(False)

    @classmethod
    def min_sources(cls, config: EpiFcrConfig) -> int:
        return 2  # an episode pairs a domain with another one

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """sum_n CE(h_n(f_n(x_n))) + L, where L gives no gradient to the domain networks.

        SGD is per-parameter, so without clipping the sum equals separate optimizers. L sees the domain networks as they
        were before this step; the original updates them first.
        """

        def loss(stream: str, logits: Tensor, samples: Batch) -> Tensor:
            generator = clock.generator(f"criterion/{stream}")
            losses: Tensor = self.criterion(logits, samples.labels, samples.domains, generator)
            return losses.mean()

        domains = self.by_domain(batch)
        logits = [network(x.images) for network, x in zip(self._networks, domains, strict=True)]
        specific = torch.stack([loss(f"own/{n}", logits[n], x) for n, x in enumerate(domains)])
        features = self.forward_domains([x.images for x in domains])
        shared = torch.stack([loss(f"agg/{n}", self.classifier(features[n]), x) for n, x in enumerate(domains)])
        terms = {"domain_networks": specific.mean(), "classification": shared.mean()}
        scale = 1 if self.config.average_domains else len(domains)
        total = specific.sum() + scale * terms["classification"]
        if clock.step >= round(self.config.warmup * clock.total):
            episode = self._episode(domains, features, loss, clock)
            total = total + scale * torch.stack([weight * value for weight, value in episode.values()]).sum()
            terms |= {name: value for name, (_, value) in episode.items()}
        return StepLoss(total, {name: value.detach() for name, value in terms.items()})

    def _episode(
        self, domains: Sequence[Batch], features: Sequence[Tensor], loss: MeanLoss, clock: Clock
    ) -> dict[str, tuple[float, Tensor]]:
        """The terms of L after the first one, with their weights. v and t differ; only f and h get a gradient.

        L = 1/K [ sum_n CE(h(f(x_n))) + w_r sum_n CE(h_r(f(x_n))) + w_f CE(h_t(f(x_v))) + w_c CE(h(f_t(x_v))) ], and
        K times as much without `average_domains`.
        """
        w, count, terms = self.config.weights, len(domains), {}
        v, t = torch.randperm(count, generator=clock.generator("episode"))[:2].tolist()
        network = self._networks[t]
        if w.random:
            random = [loss(f"random/{n}", self.random(features[n]), x) for n, x in enumerate(domains)]
            terms["random"] = (w.random, torch.stack(random).mean())
        if w.feature:
            head = network.classifier
            logits = F.linear(features[v], head.weight.detach(), head.bias.detach())
            terms["feature"] = (w.feature / count, loss("feature", logits, domains[v]))
        if w.classifier:
            with torch.no_grad():  # this also updates the running statistics of f_t, which are never used
                foreign = network.backbone(domains[v].images)
            terms["classifier"] = (w.classifier / count, loss("classifier", self.classifier(foreign), domains[v]))
        return terms

    @property
    def _networks(self) -> list[DomainNetwork]:
        return cast(list[DomainNetwork], list(self.domain_networks))
