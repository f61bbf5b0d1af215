"""Model: a trained method that names the class of an image, or says "unknown"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.progress import SILENT, Progress
from ltds.data.decode import ImageSource
from ltds.engine.stored_model import StoredModel
from ltds.methods.base import Method

if TYPE_CHECKING:
    from ltds.engine.export import ExportFormat, ExportResult

UNKNOWN = "unknown"
ModelInput = Sequence[ImageSource] | NDArray[np.floating]


@dataclass(frozen=True)
class ImagePrediction:
    """What the model says of one image: `label` is a class name or "unknown".

    `confidence` is the probability of the most probable known class, `classes` the most probable ones with theirs;
    `score` is its logit, which is compared with the threshold for "unknown".
    """

    label: str
    confidence: float
    score: float
    classes: tuple[tuple[str, float], ...]

    @property
    def unknown(self) -> bool:
        return self.label == UNKNOWN


class Model:
    """A trained method with its class names, its preprocessing and its rule for "unknown"; made by `load_model`."""

    def __init__(self, method: Method, stored: StoredModel, device: torch.device) -> None:
        self.method = method.eval()
        self.stored = stored
        self.task = stored.task
        self.record = stored.record
        self.device = device

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        return self.task.classes

    @property
    def threshold(self) -> float | None:
        """The score below which an image is called "unknown"; None: never."""
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
        logits = self.logits(images, batch_size=batch_size, progress=progress)
        return self.interpret(logits, top=top, threshold=threshold)

    def interpret(
        self, logits: NDArray[np.float32], *, top: int = 5, threshold: float | None = None
    ) -> list[ImagePrediction]:
        """What `predict` says of images with these logits (N,C)."""
        threshold = self.threshold if threshold is None else threshold
        known = np.array([c for c in range(len(self.classes)) if c not in self.task.open_classes])
        names = [self.classes[c] for c in known]
        return [_interpret(row, names, top, threshold) for row in logits[:, known].astype(np.float64)]

    def logits(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,C) logits, the same as those that evaluation stores for these images."""
        return self._collect(images, "logits", batch_size, progress)

    def features(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,D) features: what the classifier sees."""
        return self._collect(images, "features", batch_size, progress)

    def export(
        self,
        out: str | Path,
        *,
        to: ExportFormat = "safetensors",
        check: Sequence[ImageSource] = (),
        progress: Progress = SILENT,
    ) -> ExportResult:
        """Write the model to the new folder `out`, with a model card: "safetensors", "onnx" or "torch-export".

        `load_model` reads a folder of safetensors. The file that was written is run and compared with this model, on
        the images `check` or else on random inputs.
        """
        from ltds.engine.export import export

        return export(self, Path(out), to, check, progress)

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
            raw: Any = images[start : start + batch_size]
            yield self.record.preprocessing(raw).to(self.device)


def _interpret(logits: NDArray[np.float64], names: Sequence[str], top: int, threshold: float | None) -> ImagePrediction:
    """The answer for one image, from the logits of the known classes (K,)."""
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    order = np.argsort(-logits, kind="stable")[: max(1, top)]
    score = float(logits[order[0]])
    classes = tuple((names[c], float(probabilities[c])) for c in order)
    unknown = threshold is not None and score < threshold
    return ImagePrediction(UNKNOWN if unknown else classes[0][0], classes[0][1], score, classes)
