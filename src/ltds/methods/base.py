"""What a method is: settings, a loss for a step, a prediction for images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from ltds.core.config import Settings
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.semantics.embeddings import ClassEmbeddings


class Method(nn.Module, ABC):
    """A trainable model with its objective. The engine owns backward, stepping, saving and logging.

    Whatever a method learns is a parameter or a buffer; draws come from `clock.generator(...)`. Then saving, resuming
    and distributing work for it without a line of its own.
    """

    Config: ClassVar[type[Settings]]
    needs_embeddings: ClassVar[bool] = False

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

    @abstractmethod
    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        """The step's objective, from a batch with samples of every source domain."""

    def predict(self, images: Tensor) -> Prediction:
        """argmax of `logits` is the predicted class; no calibration at test (METHODS 0.4)."""
        features = self.backbone(images)
        return Prediction(logits=self.classifier(features), features=features)
