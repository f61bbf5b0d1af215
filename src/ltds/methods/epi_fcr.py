"""Epi-FCR: a backbone and a classifier that also do their work beside badly matched partners (METHODS 2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from pydantic import NonNegativeFloat, model_validator
from torch import Tensor, nn

from ltds.core.config import Fraction, Settings
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.methods.base import Method
from ltds.nn.networks import DomainNetwork, new_domain_network
from ltds.semantics.embeddings import ClassEmbeddings

Loss = Callable[[str, Tensor, Batch], Tensor]


class EpisodeWeights(Settings):
    """w_f, w_c and w_r: the backbone beside another domain's classifier, the classifier beside another domain's
    backbone, the backbone beside the random classifier. A weight of 0 leaves its term out altogether."""

    feature: NonNegativeFloat = 2.0
    classifier: NonNegativeFloat = 0.05
    random: NonNegativeFloat = 0.1


class EpiFcrConfig(Settings):
    """`warmup`: the share of the phase before the episodes begin, in which every network learns by itself."""

    criterion: CriterionSettings = CriterionSettings()
    weights: EpisodeWeights = EpisodeWeights()
    warmup: Fraction = 0.16

    @model_validator(mode="after")
    def _no_setting_without_effect(self) -> EpiFcrConfig:
        w = self.weights
        if not (w.feature or w.classifier or w.random):
            raise ValueError("weights that are all 0 leave no episode, only domain networks to pay for: use method agg")
        if self.warmup == 1:
            raise ValueError("warmup=1 never comes to an episode, only to domain networks to pay for: use method agg")
        return self


class EpiFcr(Method):
    """f and h, of which the final model is made; f_n and h_n of each source n; a classifier h_r that never learns."""

    Config = EpiFcrConfig
    config: EpiFcrConfig

    def __init__(
        self,
        config: EpiFcrConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        if len(task.sources) < 2:
            raise ConfigError(
                f"Expected two source domains or more for Epi-FCR, which pairs each with another, but got "
                f"{len(task.sources)}. Use another method (ltds methods), or a dataset with more domains."
            )
        self.criterion = Criterion(config.criterion, task)
        self.specific = nn.ModuleList(new_domain_network(backbone, self.classifier) for _ in task.sources)
        self.random = nn.Linear(features, len(task.classes)).requires_grad_(False)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """sum_n CE(h_n(f_n(x_n))) + L, each part with a gradient for its own networks only.

        The domain networks have SGD to themselves, as it were: it acts on each parameter alone. L sees them as they
        were before this step; the original steps them first.
        """

        def loss(name: str, logits: Tensor, part: Batch) -> Tensor:
            drawn = clock.generator(f"criterion/{name}")
            each: Tensor = self.criterion(logits, part.labels, part.domains, drawn)
            return each.mean()

        parts = [batch.of(domain) for domain in range(len(self.task.sources))]
        logits = [network(part.images) for network, part in zip(self._networks, parts, strict=True)]
        own = [loss(f"own/{n}", logits[n], part) for n, part in enumerate(parts)]
        features = [self.backbone(part.images) for part in parts]
        agg = [loss(f"agg/{n}", self.classifier(features[n]), part) for n, part in enumerate(parts)]
        terms = {"domain_networks": torch.stack(own).mean(), "classification": torch.stack(agg).mean()}
        total = torch.stack(own).sum() + terms["classification"]
        if clock.step >= round(self.config.warmup * clock.total):
            episode = self._episode(parts, features, loss, clock)
            total = total + torch.stack([weight * value for weight, value in episode.values()]).sum()
            terms |= {name: value for name, (_, value) in episode.items()}
        return StepLoss(total, {name: value.detach() for name, value in terms.items()})

    def _episode(
        self, parts: Sequence[Batch], features: Sequence[Tensor], loss: Loss, clock: Clock
    ) -> dict[str, tuple[float, Tensor]]:
        """The terms of L beside the plain one, with their weights; v and t differ. Only f and h get a gradient.

        L = 1/K [ sum_n CE(h(f(x_n))) + w_r sum_n CE(h_r(f(x_n))) + w_f CE(h_t(f(x_v))) + w_c CE(h(f_t(x_v))) ]
        """
        w, domains, terms = self.config.weights, len(parts), {}
        v, t = torch.randperm(domains, generator=clock.generator("episode"))[:2].tolist()
        network = self._networks[t]
        if w.random:
            random = [loss(f"random/{n}", self.random(features[n]), part) for n, part in enumerate(parts)]
            terms["random"] = (w.random, torch.stack(random).mean())
        if w.feature:
            head = network.classifier
            logits = F.linear(features[v], head.weight.detach(), head.bias.detach())
            terms["feature"] = (w.feature / domains, loss("feature", logits, parts[v]))
        if w.classifier:
            with torch.no_grad():  # f_t's running statistics move too, but nothing ever reads them
                foreign = network.backbone(parts[v].images)
            terms["classifier"] = (w.classifier / domains, loss("classifier", self.classifier(foreign), parts[v]))
        return terms

    @property
    def _networks(self) -> list[DomainNetwork]:
        return cast(list[DomainNetwork], list(self.specific))
