"""Decoupled training (Kang et al., ICLR 2020): learn features as Agg does, then replace or rescale the classifier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from ltds.core.config import Settings, refuse_idle
from ltds.core.errors import DataError, expected
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.base import Method, Phase
from ltds.methods.problem import Problem
from ltds.stats.centroids import group_sums

# Kang et al. train the head for 10 epochs (lws: 5) after 90, with lr .2 for a batch of 512. For a batch of 4 x 48 this
# is lr .075, three quarters of the default .1.
_HEAD_PHASE = Phase("classifier", sampler="classes", lr_scale=0.75, decay="cosine", from_best=True)
HEAD_PHASES = {
    "crt": replace(_HEAD_PHASE, share=0.1, trainable=("classifier.",)),
    "lws": replace(_HEAD_PHASE, share=0.05, trainable=("scales",)),
}


class DecoupledConfig(AggConfig):
    """Settings of decoupled training. The settings of Agg apply to the first phase.

    Heads: crt is a new classifier, trained on class-balanced samples. lws keeps the classifier and learns a scale for
    each class. tau is w_c / |w_c|^tau without bias, with tau chosen on validation. ncm is the nearest class mean.
    """

    head: Literal["crt", "lws", "tau", "ncm"] = Field("crt", description="what replaces the classifier after Agg")
    second_phase_batchnorm: Literal["train", "eval"] = Field(
        "train", description="crt, lws: whether BatchNorm of the frozen backbone is still updated (train: the original)"
    )
    distance: Literal["euclidean", "cosine"] = Field("euclidean", description="ncm: the distance to the class means")

    @model_validator(mode="after")
    def _no_setting_that_the_head_ignores(self) -> DecoupledConfig:
        refuse_idle(self, ["posthoc_tau"], f"with head={self.head}, which replaces the classifier's logits")
        if self.head not in HEAD_PHASES:
            refuse_idle(self, ["second_phase_batchnorm"], f"with head={self.head}, which has no second phase")
        if self.head != "ncm":
            refuse_idle(self, ["distance"], f"with head={self.head}, only with head=ncm")
        return self


class Decoupled(Agg):
    """Learn features with Agg, then freeze them and make another head for them: cRT, LWS, tau-norm or NCM.

    Until `fit_after_training` has fitted tau or the class means, the classifier of the first phase predicts.
    """

    Config = DecoupledConfig
    config: DecoupledConfig
    tau: Tensor  # (), head tau
    means: Tensor  # (C,D), head ncm
    fitted: Tensor  # () bool, heads tau and ncm

    def __init__(self, config: DecoupledConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        task = self.task
        if not task.class_counts.any():
            remedy = "Add training images, or hold another domain out."
            raise DataError(expected(f"some class of task '{task.name}'", "in its source domains", "none", remedy))
        if config.head == "lws":
            self.scales = nn.Parameter(torch.ones(len(task.classes)))
        elif config.head == "tau":
            self.register_buffer("tau", torch.zeros(()))
        elif config.head == "ncm":
            self.register_buffer("means", torch.zeros(len(task.classes), problem.feature_dim))
        self.fits_after_training = config.head not in HEAD_PHASES
        if self.fits_after_training:
            self.register_buffer("fitted", torch.tensor(False))

    @classmethod
    def needs_validation(cls, config: DecoupledConfig) -> bool:
        return config.head == "tau"

    @classmethod
    def begins_as(cls, config: DecoupledConfig) -> tuple[type[Method], Settings]:
        return Agg, AggConfig(**{name: getattr(config, name) for name in AggConfig.model_fields})

    def phases(self) -> tuple[Phase, ...]:
        first = Phase()  # under the name that Agg gives it, which its random numbers depend on
        return (first, HEAD_PHASES[self.config.head]) if self.config.head in HEAD_PHASES else (first,)

    def start_phase(self, phase: Phase) -> None:
        if self.config.head == "crt":
            self.classifier.reset_parameters()

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        if clock.phase != "classifier":
            return super().loss(batch, clock)
        # One pass for all domains: a class-balanced batch may hold one image of a domain, or none.
        self.backbone.train(self.training and self.config.second_phase_batchnorm == "train")
        with torch.no_grad():
            features = self.backbone(batch.images)
        total = F.cross_entropy(self._logits(features), batch.labels)
        return StepLoss(total=total, terms={"classification": total.detach()})

    def training_passes(self, batch: Batch, phase: Phase) -> list[Tensor]:
        if phase.name == "classifier" and self.config.second_phase_batchnorm == "eval":
            return []  # BatchNorm keeps what it has from the first phase
        return super().training_passes(batch, phase)

    def predict(self, images: Tensor) -> Prediction:
        features = self.backbone(images)
        return Prediction(logits=self._logits(features), features=features)

    def fit_after_training(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        if self.config.head == "tau":
            self.tau.copy_(self._best_tau(validation))
        else:
            self.means.copy_(self._class_means(training))
        self.fitted.fill_(True)

    def _logits(self, features: Tensor) -> Tensor:
        """(N,C) the logits of the head for features (N,D)."""
        if not self.fits_after_training or not bool(self.fitted):
            logits: Tensor = self.classifier(features)
            return self.scales * logits if self.config.head == "lws" else logits
        if self.config.head == "tau":
            return features @ tau_normalized(self.classifier.weight, self.tau).T
        logits = closeness(features, self.means, self.config.distance)
        # The lowest finite number: a class without images has no mean and must never win.
        return logits.masked_fill(self.class_counts == 0, torch.finfo(logits.dtype).min)

    def _best_tau(self, validation: Iterable[Batch]) -> Tensor:
        """() the tau in 0, .1, .., 2 with the best accuracy, averaged over source domains; the smallest of equals."""
        taus = torch.arange(21, dtype=self.tau.dtype, device=self.tau.device) / 10
        weights = [tau_normalized(self.classifier.weight, tau) for tau in taus]
        hits = torch.zeros(len(taus), len(self.task.sources), dtype=torch.long)
        images = torch.zeros(len(self.task.sources), dtype=torch.long)
        for batch in validation:
            features = self.backbone(batch.images)
            correct = torch.stack([(features @ weight.T).argmax(dim=1) == batch.labels for weight in weights]).cpu()
            domains, known = batch.domains.cpu(), (self.class_counts[batch.labels] > 0).cpu()
            for domain in range(len(images)):
                mask = known & (domains == domain)
                hits[:, domain] += correct[:, mask].sum(dim=1)
                images[domain] += mask.sum()
        if not images.any():
            remedy = "Mark some training images with the split 'val' in manifest.csv, or choose the method 'crt'."
            raise DataError(expected("tau", "chosen on validation images of known classes", "none", remedy))
        score = (hits[:, images > 0].double() / images[images > 0]).mean(dim=1)
        return taus[int(np.argmax(score.numpy().round(12)))]  # numpy returns the first of equals, torch any of them

    def _class_means(self, training: Iterable[Batch]) -> Tensor:
        """(C,D) the mean feature of each class; zeros for a class without images."""
        samples = ((self.backbone(batch.images), batch.host_labels) for batch in training)
        sums, images = group_sums(samples, *self.means.shape)
        missing = [
            self.task.classes[c] for c in ((self.class_counts.cpu() > 0) & (images == 0)).nonzero().flatten().tolist()
        ]
        if missing:
            remedy = "Pass every training image of the task's source domains."
            raise DataError(expected(f"class '{missing[0]}'", "among the images to average", "none of it", remedy))
        return sums / images.clamp(min=1)[:, None]


def tau_normalized(weight: Tensor, tau: Tensor) -> Tensor:
    """(C,D) w_c / |w_c|^tau for weight (C,D); a row of zeros stays zero."""
    norm = torch.linalg.vector_norm(weight, dim=1, keepdim=True).clamp(min=1e-12)
    return weight / torch.pow(norm, tau)


def closeness(features: Tensor, means: Tensor, distance: Literal["euclidean", "cosine"]) -> Tensor:
    """(N,C) the negative squared distance of features (N,D) to means (C,D).

    "cosine" scales both to unit length first, which gives 2 cos - 2.
    """
    if distance == "cosine":
        features, means = F.normalize(features, dim=1), F.normalize(means, dim=1)
    # From differences: |f|^2 - 2 f.m + |m|^2 is inaccurate for small distances.
    return -torch.cdist(features, means, compute_mode="donot_use_mm_for_euclid_dist").square()
