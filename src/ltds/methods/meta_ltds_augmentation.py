"""L_Aug of LT-DS, Eqs. (6) to (8): implicit augmentation guided by the covariances of similar classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ltds.core.types import Clock
from ltds.losses.augmentation import augmentation_loss, strength_at
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.meta_ltds_outputs import Outputs
from ltds.methods.problem import Problem
from ltds.stats.covariance import CovarianceEstimate, OnlineCovariance
from ltds.stats.neighbours import neighbour_covariance


class GuidedAugmentation(nn.Module):
    """Covariances Sigma of the features of each class, Sigma' of its semantic neighbours, and the loss L_Aug."""

    neighbours: Tensor  # (C,k)
    class_counts: Tensor  # (C,) training images of each class
    log_n: Tensor  # (K,C) log counts of each domain

    def __init__(self, config: MetaLtdsConfig, problem: Problem, neighbours: Tensor, log_n: Tensor) -> None:
        super().__init__()
        self.config = config
        self.covariance = OnlineCovariance(
            len(problem.task.classes),
            problem.feature_dim,
            full=config.covariance == "full",
            initial_count=1.0 if config.covariance_pseudo_sample else 0.0,
        )
        buffers = {"neighbours": neighbours, "class_counts": torch.tensor(problem.task.class_counts), "log_n": log_n}
        for name, value in buffers.items():  # not learned, so not saved
            self.register_buffer(name, value.clone(), persistent=False)

    def strength(self, clock: Clock) -> float | None:
        """lambda of this epoch; None before T_Sigma."""
        epochs = clock.total / clock.steps_per_epoch
        start = round(self.config.covariance_start * epochs, 9)  # so that .55 x 100 is 55
        schedule = self.config.strength_schedule
        return strength_at(clock.epoch, start=start, end=epochs, peak=self.config.strength, schedule=schedule)

    def loss_with_update(
        self, outputs: Outputs, weight: Tensor, strength: float, domains: Sequence[int]
    ) -> tuple[Tensor, CovarianceEstimate, Tensor]:
        """L_Aug with the Sigma and Sigma' that include these features, and those two; nothing is stored yet.

        "interleaved" repeats the released code, which updates domain by domain, in the order in which `domains` were
        drawn: the loss of a domain does not see the domains after it.
        """
        if self.config.covariance_order == "together":
            covariance = self.covariance.updated(outputs.features, outputs.host_labels)
            sigma = self.neighbour_covariance(covariance)
            return self.loss(outputs, weight, sigma, strength), covariance, sigma
        covariance, losses = self.covariance.estimate, []
        for domain in domains:
            samples = outputs.of(domain)
            covariance = covariance.updated(samples.features, samples.host_labels)
            losses.append(self.loss(samples, weight, self.neighbour_covariance(covariance), strength))
        return torch.stack(losses).mean(), covariance, self.neighbour_covariance(covariance)

    def neighbour_covariance(self, covariance: CovarianceEstimate) -> Tensor:
        """Sigma', Eq. (7)."""
        counts = {"class_count": self.class_counts, "running": covariance.count, "none": None}
        return neighbour_covariance(covariance.sigma, self.neighbours, counts[self.config.neighbour_weights])

    def loss(
        self, outputs: Outputs, weight: Tensor, sigma: Tensor, strength: float, true_weight: Tensor | None = None
    ) -> Tensor:
        """The mean of L_aug, Eq. (8). `true_weight` (C,D) replaces the classifier's weight for the true class."""
        log_n = self.log_n[outputs.domains] if self.config.calibrated_augmentation else None
        return augmentation_loss(
            outputs.logits, outputs.host_labels, weight, sigma, strength, log_n=log_n, true_weight=true_weight
        ).mean()
