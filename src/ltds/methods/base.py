"""What a method is: settings, a loss for a step, a prediction for images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.semantics.embeddings import ClassEmbeddings


def seen_by(f: Callable[[Tensor], Tensor], parts: Sequence[Batch], *, joint: bool) -> list[Tensor]:
    """f(x) of each part: each in a pass of its own, so that BatchNorm sees one domain at a time, or all in one pass."""
    if not joint:
        return [f(part.images) for part in parts]
    together = f(torch.cat([part.images for part in parts]))
    ends = list(accumulate(len(part) for part in parts))
    return list(together.tensor_split(ends[:-1]))


def weighted(terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """sum of w_k L_k over the terms there are."""
    return torch.stack([weights[name] * value for name, value in terms.items()]).sum()


@dataclass(frozen=True)
class Phase:
    """A stretch of training with its own sampler, trainable parameters and learning rate.

    `share`: its length in units of the run's epochs, in whole epochs, at least one; `lr_scale`: a factor on the run's
    learning rate; `trainable`: prefixes of parameter names, all others are frozen; `from_best`: begin with the best
    validated weights of the phase before, not with its last.
    """

    name: str = "main"
    share: float = 1.0
    sampler: Literal["domains", "classes"] = "domains"
    trainable: tuple[str, ...] = ("",)
    lr_scale: float = 1.0
    decay: Literal["milestones", "cosine", "constant"] = "milestones"
    from_best: bool = False


class Method(nn.Module, ABC):
    """A trainable model with its objective. The engine owns backward, stepping, saving and logging.

    Whatever a method learns is a parameter or a buffer; draws come from `clock.generator(...)`. Then saving, resuming
    and distributing work for it without a line of its own.
    """

    Config: ClassVar[type[Settings]]
    batches: ClassVar[int] = 1  # batches of each domain that a step needs; Batch.split gives them back
    concludes: bool = False  # whether `conclude` does anything
    needs_validation: bool = False  # whether it does so with validation images
    channels_last: bool = True  # the layout of convolutions: quicker on a CPU, unless gradients are differentiated

    def __init__(
        self,
        config: Any,
        *,
        task: Task,
        embeddings: ClassEmbeddings | None,
        backbone: nn.Module,
        features: int,
    ) -> None:
        super().__init__()
        self.config = config
        self.task = task
        self.backbone = backbone
        self.classifier = nn.Linear(features, len(task.classes))

    @classmethod
    def uses_embeddings(cls, config: Any) -> bool:
        """Whether these settings need class embeddings."""
        return False

    def phases(self) -> tuple[Phase, ...]:
        """What training consists of, in order."""
        return (Phase(),)

    def enter(self, phase: Phase) -> None:
        """Prepare the weights for a later phase: once, before its first step, the global RNG seeded for it."""

    @abstractmethod
    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """The step's objective, from a batch with samples of every source domain; the clock counts within the phase."""

    def conclude(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        """Fit what needs no gradient, after training: with the best weights, in evaluation mode, into buffers.

        Images come without augmentation. Doing it twice must be the same as doing it once.
        """

    def views(self, features: Tensor) -> dict[str, Tensor]:
        """What figures show of the method beside its predictions; nothing here. features f(x) (N,D), no gradient.

        "projected" (N,S): the features in the semantic space. "embeddings" (C,C): the cosine of class embeddings, NaN
        where a class has none. "covariances" and "updated" (C,C): |Sigma_i - Sigma_j| and |Sigma'_i - Sigma'_j|.
        """
        return {}

    def predict(self, images: Tensor) -> Prediction:
        """argmax of `logits` is the predicted class; no calibration at test (METHODS 0.4)."""
        features = self.backbone(images)
        return Prediction(logits=self.classifier(features), features=features)
