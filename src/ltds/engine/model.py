"""Model: a trained method that names the class of an image, or says "unknown"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.progress import SILENT, Progress
from ltds.core.task import Task
from ltds.data.decode import ImageSource
from ltds.engine.model_record import ModelRecord
from ltds.methods.base import Method

UNKNOWN = "unknown"
ModelInput = Sequence[ImageSource] | NDArray[np.floating]


@dataclass(frozen=True)
class ImagePrediction:
    """What the model says of one image: `label` is a class name or "unknown".

    `confidence` is the probability of the most probable class, `classes` the most probable ones with theirs.
    """

    label: str
    confidence: float
    classes: tuple[tuple[str, float], ...]

    @property
    def unknown(self) -> bool:
        return self.label == UNKNOWN


class Model:
    """A trained method with its class names, its preprocessing and its rule for "unknown"; made by `load_model`."""

    def __init__(self, method: Method, task: Task, record: ModelRecord, device: torch.device) -> None:
        self.method = method.eval()
        self.task = task
        self.record = record
        self.device = device

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        return self.task.classes

    @property
    def threshold(self) -> float | None:
        """The score below which an image is called "unknown"; None: only predicted open classes are."""
        return self.record.unknown.threshold

    def predict(
        self,
        images: ModelInput,
        *,
        top: int = 5,
        threshold: float | None = None,
        batch_size: int = 64,
        progress: Progress = SILENT,
    ) -> list[ImagePrediction]:
        """The class of each image, or "unknown"; images are paths, file contents (bytes) or Pillow images.

        A model that was trained on precomputed features takes those instead, as an array (N,D).
        `top`: how many of the most probable classes to list. `threshold`: instead of the model's own.
        """
        threshold = self.threshold if threshold is None else threshold
        logits = self.logits(images, batch_size=batch_size, progress=progress)
        return [self._interpret(row, top, threshold) for row in _softmax(logits)]

    def logits(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,C) logits, the same as those that evaluation stores for these images."""
        return self._collect(images, "logits", batch_size, progress)

    def features(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,D) features: what the classifier sees."""
        return self._collect(images, "features", batch_size, progress)

    def _collect(self, images: ModelInput, output: str, batch_size: int, progress: Progress) -> NDArray[np.float32]:
        images = [images] if isinstance(images, str | bytes | Path) else images
        with progress.track("Predicting", len(images)) as advance, torch.inference_mode():
            rows = []
            for batch in self._batches(images, batch_size):
                rows.append(getattr(self.method.predict(batch), output).float().cpu().numpy())
                advance(len(batch))
        return np.concatenate(rows) if rows else np.empty((0, len(self.classes)), np.float32)

    def _batches(self, images: ModelInput, batch_size: int) -> Iterator[Tensor]:
        """The images as evaluation gives them to the network."""
        for start in range(0, len(images), batch_size):
            yield self.record.preprocessing(images[start : start + batch_size]).to(self.device)

    def _interpret(self, probabilities: NDArray[np.float64], top: int, threshold: float | None) -> ImagePrediction:
        order = np.argsort(-probabilities, kind="stable")[: max(1, top)]
        best, confidence = int(order[0]), float(probabilities[order[0]])
        unknown = best in self.task.open_classes or (threshold is not None and confidence < threshold)
        classes = tuple((self.classes[c], float(probabilities[c])) for c in order)
        return ImagePrediction(UNKNOWN if unknown else self.classes[best], confidence, classes)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N,C) probabilities in float64, as evaluation computes them."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True).astype(np.float64)
    exponentials = np.exp(shifted)
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
