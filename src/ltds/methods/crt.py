"""cRT and its siblings (Kang et al., ICLR 2020): features as Agg learns them, then a classifier of another making."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import model_validator
from torch import Tensor, nn

from ltds.core.errors import DataError, expected
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.base import Phase
from ltds.semantics.embeddings import ClassEmbeddings

# METHODS 2.1. 10 epochs (lws: 5) beside 100; lr .2 for a batch of 512 is .075 for 192, three quarters of 0.3's .1.
SECOND = {
    "crt": Phase("classifier", 0.1, "classes", ("classifier.",), 0.75, "cosine", from_best=True),
    "lws": Phase("classifier", 0.05, "classes", ("scales",), 0.75, "cosine", from_best=True),
}


class DecoupledConfig(AggConfig):
    """Agg's settings are of the first phase. `head`: what the classifier becomes once the features are learned.

    crt: trained anew on class-balanced samples. lws: kept, with a learned scale for each class. tau: w_c / |w_c|^tau
    without bias, tau chosen on validation. ncm: nearest class mean of the features, by `distance`.
    `statistics`: whether the frozen backbone's BatchNorm keeps moving in the second phase (train: as the original).
    """

    head: Literal["crt", "lws", "tau", "ncm"] = "crt"
    statistics: Literal["train", "eval"] = "train"
    distance: Literal["euclidean", "cosine"] = "euclidean"

    @model_validator(mode="after")
    def _no_setting_that_the_head_ignores(self) -> DecoupledConfig:
        if self.posthoc_tau:
            raise ValueError(f"posthoc_tau has no effect with head={self.head}, a correction of its own: leave it out")
        if self.statistics != "train" and self.head not in SECOND:
            raise ValueError(f"statistics has no effect with head={self.head}, which has no second phase: leave it out")
        if self.distance != "euclidean" and self.head != "ncm":
            raise ValueError(f"distance has no effect with head={self.head}, only with ncm: leave it out")
        return self


class Decoupled(Agg):
    """Agg for the features; then, with them frozen, a new head: METHODS 2.1.

    Until `conclude` has fitted tau or the class means, predictions are those of the first phase's classifier.
    """

    Config = DecoupledConfig
    config: DecoupledConfig
    tau: Tensor  # (), head tau
    means: Tensor  # (C,D), head ncm
    concluded: Tensor  # () bool, heads tau and ncm

    def __init__(
        self,
        config: DecoupledConfig,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None = None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
        if not task.class_counts.any():
            remedy = "Add training images, or hold another domain out."
            raise DataError(expected(f"some class of task '{task.name}'", "in its source domains", "none", remedy))
        if config.head == "lws":
            self.scales = nn.Parameter(torch.ones(len(task.classes)))
        elif config.head == "tau":
            self.register_buffer("tau", torch.zeros(()))
        elif config.head == "ncm":
            self.register_buffer("means", torch.zeros(len(task.classes), features))
        self.concludes = config.head not in SECOND
        self.needs_validation = config.head == "tau"
        if self.concludes:
            self.register_buffer("concluded", torch.tensor(False))

    def phases(self) -> tuple[Phase, ...]:
        first = Phase("features")
        return (first, SECOND[self.config.head]) if self.config.head in SECOND else (first,)

    def enter(self, phase: Phase) -> None:
        if self.config.head == "crt":
            self.classifier.reset_parameters()

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        if clock.phase != "classifier":
            return super().loss(batch, clock)
        # One pass for the whole pool: a balanced batch may hold one image of a domain, or none.
        self.backbone.train(self.training and self.config.statistics == "train")
        with torch.no_grad():
            features = self.backbone(batch.images)
        total = F.cross_entropy(self._logits(features), batch.labels)
        return StepLoss(total=total, terms={"classification": total.detach()})

    def predict(self, images: Tensor) -> Prediction:
        features = self.backbone(images)
        return Prediction(logits=self._logits(features), features=features)

    def conclude(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        if self.config.head == "tau":
            self.tau.copy_(self._best_tau(validation))
        else:
            self.means.copy_(self._class_means(training))
        self.concluded.fill_(True)

    def _logits(self, features: Tensor) -> Tensor:
        """(N,C) what the head says of features (N,D)."""
        if not self.concludes or not bool(self.concluded):
            logits: Tensor = self.classifier(features)
            return self.scales * logits if self.config.head == "lws" else logits
        if self.config.head == "tau":
            return features @ tau_normalized(self.classifier.weight, self.tau).T
        logits = closeness(features, self.means, self.config.distance)
        # Finite, and below every other: a class without images has no mean and never wins.
        return logits.masked_fill(self.class_counts == 0, torch.finfo(logits.dtype).min)

    def _best_tau(self, validation: Iterable[Batch]) -> Tensor:
        """() the tau of 0, .1, .. 2 with the best mean over source domains of accuracy; of equals the smallest."""
        taus = torch.arange(21, dtype=self.tau.dtype, device=self.tau.device) / 10
        weights = [tau_normalized(self.classifier.weight, tau) for tau in taus]
        hits = torch.zeros(len(taus), len(self.task.sources), dtype=torch.long)
        images = torch.zeros(len(self.task.sources), dtype=torch.long)
        for batch in validation:
            features = self.backbone(batch.images)
            right = torch.stack([(features @ weight.T).argmax(dim=1) == batch.labels for weight in weights]).cpu()
            domains, known = batch.domains.cpu(), (self.class_counts[batch.labels] > 0).cpu()
            for domain in range(len(images)):
                mask = known & (domains == domain)
                hits[:, domain] += right[:, mask].sum(dim=1)
                images[domain] += mask.sum()
        if not images.any():
            remedy = "Mark some training images with the split 'val' in manifest.csv, or use --method crt."
            raise DataError(expected("tau", "chosen on validation images of known classes", "none", remedy))
        score = (hits[:, images > 0].double() / images[images > 0]).mean(dim=1)
        return taus[int(np.argmax(score.numpy().round(12)))]  # numpy gives the first of equals, torch gives any

    def _class_means(self, training: Iterable[Batch]) -> Tensor:
        """(C,D) mean features of each class; zeros for a class without images."""
        sums = torch.zeros(self.means.shape, dtype=torch.float64)  # on the CPU: exact enough, and in a fixed order
        images = torch.zeros(len(sums), dtype=torch.long)
        for batch in training:
            labels = batch.labels.cpu()
            sums.index_add_(0, labels, self.backbone(batch.images).cpu().double())
            images += torch.bincount(labels, minlength=len(images))
        missing = [
            self.task.classes[c] for c in ((self.class_counts.cpu() > 0) & (images == 0)).nonzero().flatten().tolist()
        ]
        if missing:
            remedy = "Pass every training image of the task's source domains."
            raise DataError(expected(f"class '{missing[0]}'", "among the images to average", "none of it", remedy))
        return sums / images.clamp(min=1)[:, None]


def tau_normalized(weight: Tensor, tau: Tensor) -> Tensor:
    """(C,D) w_c / |w_c|^tau, of weight (C,D); a row of zeros stays one."""
    norm = torch.linalg.vector_norm(weight, dim=1, keepdim=True).clamp(min=1e-12)
    return weight / torch.pow(norm, tau)


def closeness(features: Tensor, means: Tensor, distance: Literal["euclidean", "cosine"]) -> Tensor:
    """(N,C) minus the squared distance of features (N,D) to means (C,D).

    "cosine" brings both to unit length first: 2 cos - 2.
    """
    if distance == "cosine":
        features, means = F.normalize(features, dim=1), F.normalize(means, dim=1)
    # By differences, not by |f|^2 - 2 f.m + |m|^2, which loses the digits of a small distance.
    return -torch.cdist(features, means, compute_mode="donot_use_mm_for_euclid_dist").square()
