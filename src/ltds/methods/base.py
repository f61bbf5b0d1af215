"""What a method is: settings, a loss for a training step, a prediction for images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.errors import ConfigError
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.methods.problem import Problem
from ltds.nn.adapter import is_row_by_row


def weighted_sum(terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """The sum of w_k L_k over the given terms."""
    return torch.stack([weights[name] * value for name, value in terms.items()]).sum()


def labels_and_domains(batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """(N,) the labels and (N,) the source domains of these batches, one batch after the other."""
    return torch.cat([b.labels for b in batches]), torch.cat([b.domains for b in batches])


def host_labels_and_domains(batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """The same on the CPU: looking at them there does not make the host wait for a GPU."""
    labels, domains = (np.concatenate(x) for x in zip(*((b.host_labels, b.host_domains) for b in batches), strict=True))
    return torch.from_numpy(labels), torch.from_numpy(domains)


@dataclass(frozen=True)
class Phase:
    """One phase of training, with its own sampler, trainable parameters and learning rate.

    `share`: its length as a share of the run's epochs, rounded to whole epochs, at least one. `lr_scale`: a factor on
    the run's learning rate. `trainable`: prefixes of parameter names; all other parameters are frozen. `from_best`:
    start from the best validated weights of the previous phase instead of its last ones.
    """

    name: str = "main"
    share: float = 1.0
    sampler: Literal["domains", "classes"] = "domains"
    trainable: tuple[str, ...] = ("",)
    lr_scale: float = 1.0
    decay: Literal["milestones", "cosine", "constant"] = "milestones"
    from_best: bool = False


class Method(nn.Module, ABC):
    """A trainable model with its objective. The engine does the backward pass, optimizer step, saving and logging.

    Everything a method learns is a parameter or a buffer, and all random numbers come from `clock.generator(...)`.
    Then saving and exact resuming work without any further code in the method.
    """

    Config: ClassVar[type[Settings]] = Settings  # none, unless a method has some
    batches_per_step: ClassVar[int] = 1  # batches of each domain that a step takes; Batch.split separates them
    fits_after_training: bool = False  # whether `fit_after_training` does anything
    mixes_domains: bool = False  # whether images of all domains are in one forward pass in training
    second_order: bool = False  # whether `loss` differentiates a gradient: no compiled network, another memory layout

    def __init__(self, config: Any, problem: Problem) -> None:
        super().__init__()
        self.require_sources(config, problem.task.sources)
        self.config = config
        self.task = problem.task
        self.backbone = problem.backbone
        self.classifier = nn.Linear(problem.feature_dim, len(problem.task.classes))

    @classmethod
    def uses_embeddings(cls, config: Any) -> bool:
        """Whether these settings need class embeddings."""
        return False

    @classmethod
    def min_sources(cls, config: Any) -> int:
        """How many source domains these settings need at least."""
        return 1

    @classmethod
    def require_sources(cls, config: Any, sources: Sequence[str], name: str = "") -> None:
        """Refuse too few source domains for these settings. `name`: the method's, as the user knows it."""
        needed = cls.min_sources(config)
        if len(sources) < needed:
            raise ConfigError(
                f"Expected at least {needed} source domains for {name or cls.__name__} with these settings, but the "
                f"task has {len(sources)} ({', '.join(sources)}). Use a dataset with more domains, or another method "
                "(ltds methods)."
            )

    @classmethod
    def needs_validation(cls, config: Any) -> bool:
        """Whether `fit_after_training` needs validation images of known classes."""
        return False

    @classmethod
    def begins_as(cls, config: Any) -> tuple[type[Method], Settings] | None:
        """The method and settings whose complete training is, bit for bit, the first phase of this method.

        A benchmark of both trains this phase once. None: there is no such method. A subclass may train in another way,
        so it does not inherit the answer.
        """
        return None

    def phases(self) -> tuple[Phase, ...]:
        """The phases of training, in order."""
        return (Phase(),)

    def start_phase(self, phase: Phase) -> None:
        """Prepare the weights for a phase after the first. Called once before its first step, with the RNG seeded."""

    @abstractmethod
    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """The loss of a step, from a batch with samples of every source domain. The clock counts within the phase."""

    def fits_before(self, clock: Clock) -> bool:
        """Whether `fit_in_training` is called before the step at this clock. It must depend on the clock alone."""
        return False

    def fit_in_training(self, training: Iterable[Batch]) -> None:
        """Compute what a loss needs to know of all training images, and store it in the buffers of a `Statistics`.

        Called before the steps that `fits_before` names, with the weights of that moment, without gradient, in
        evaluation mode, on images without augmentation. Each loop over `training` shows all images.
        """

    def fit_after_training(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        """Compute what needs no gradient, after training, and store it in buffers.

        Called with the best weights, in evaluation mode, on images without augmentation. A second call must give the
        same result as the first.
        """

    def project(self, features: Tensor) -> Tensor | None:
        """(N,S) the features f(x) (N,D) in the space of the class embeddings; None for a method without one."""
        return None

    def diagnostics(self, features: Tensor) -> dict[str, Tensor]:
        """Quantities that figures show besides predictions; none by default. features f(x) (N,D), no gradient.

        "projected" (N,S): the features in the semantic space. "embeddings" (C,C): cosines of the class embeddings, NaN
        for a class without one. "covariances" and "updated" (C,C): |Sigma_i - Sigma_j| and |Sigma'_i - Sigma'_j|.
        """
        return {}

    def predict(self, images: Tensor) -> Prediction:
        """argmax of `logits` is the predicted class. Class counts calibrate training, not prediction."""
        features = self.backbone(images)
        return Prediction(logits=self.classifier(features), features=features)

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """theta: the parameters that this phase trains, by name."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def by_domain(self, batch: Batch) -> list[Batch]:
        """The batch of each source domain, in the order of `task.sources`."""
        return [batch.of(domain) for domain in range(len(self.task.sources))]

    def forward_domains(
        self, images: Sequence[Tensor], f: Callable[[Tensor], Tensor] | None = None, *, joint: bool = False
    ) -> list[Tensor]:
        """f(x) of each domain's images; `f`: the backbone, perhaps with other weights, or one like it.

        One forward pass for each domain, so that BatchNorm sees one domain at a time. `joint` takes all domains in one
        pass. So does a backbone for which this makes no difference, because fewer passes are faster.
        """
        f = f or self.backbone
        if len(images) == 1 or not (joint or is_row_by_row(self.backbone)):
            return [f(x) for x in images]
        return list(f(torch.cat(list(images))).split([len(x) for x in images]))

    def training_passes(self, batch: Batch, phase: Phase) -> list[Tensor]:
        """The images of a batch as training divides them: one tensor for each forward pass in which BatchNorm learns.

        They serve to estimate BatchNorm's statistics for averaged weights. A class-balanced batch is one pass, as it
        may hold one image of a domain, or none.
        """
        together = self.mixes_domains or phase.sampler == "classes"
        parts = batch.split(self.batches_per_step)
        return [x.images for part in parts for x in ([part] if together else self.by_domain(part))]
