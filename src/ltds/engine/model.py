"""Model: a trained method that names the class of an image, or says "unknown"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.core.text import few
from ltds.data.decode import ImageSource, is_image, not_an_image
from ltds.engine.model_record import UnknownRule
from ltds.engine.naming import UnknownNamer
from ltds.engine.stored_model import StoredModel
from ltds.engine.training_index import NearestImage, TrainingIndex
from ltds.evaluation.openset import softened_confidence
from ltds.methods.base import Method

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest
    from ltds.engine.export import ExportFormat, ExportResult

UNKNOWN = "unknown"
USER_RULE = (
    "the score is the softened confidence in a known class; the threshold was chosen by the user, after the model had "
    "been tested with another one"
)
ModelInputs = Sequence[ImageSource] | NDArray[Any]  # an array of numbers (N,D), or of paths (N,)
ModelInput = ImageSource | ModelInputs | Iterable[ImageSource]


@dataclass(frozen=True)
class ImagePrediction:
    """What the model says of one image: `label` is a class name or, where `unknown` is true, "unknown".

    `confidence` is the probability of the most probable known class, `classes` the most probable ones with theirs;
    `score` is a softened confidence, which is compared with the threshold for "unknown". `nearest`: the most similar
    training images, most similar first, where they were asked for. `name`: for an unknown image the open class whose
    description is nearest, where that was asked for.
    """

    label: str
    confidence: float
    score: float
    classes: tuple[tuple[str, float], ...]
    nearest: tuple[NearestImage, ...] = ()
    name: str = ""
    unknown: bool = False  # not to be read off the label: somebody's class may have that name


AddDetails = Callable[[list[ImagePrediction], NDArray[np.float32]], list[ImagePrediction]]


class Model:
    """A trained method with its class names, its preprocessing and its rule for "unknown"; made by `load_model`."""

    def __init__(self, method: Method, stored: StoredModel, device: torch.device, folder: Path | None = None) -> None:
        """`folder`: the run or model directory that it was read from."""
        self.method = method.eval()
        self.stored = stored
        self.task = stored.task
        self.record = stored.record
        self.device = device
        self.folder = folder
        self._index: TrainingIndex | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        return self.task.classes

    @property
    def threshold(self) -> float | None:
        """The score below which an image is called "unknown"; None: never."""
        return self.record.unknown.threshold

    def with_threshold(self, threshold: float) -> Model:
        """The same model with a threshold that you have chosen; what `export` writes says so."""
        check_threshold(threshold)
        if not math.isfinite(threshold):
            remedy = "Choose a number below 1, such as 0.9."
            raise ConfigError(expected("argument 'threshold'", "a finite number", threshold, remedy))
        before = self.record.unknown
        unknown = UnknownRule(
            score=before.score, temperature=before.temperature, threshold=float(threshold), rule=USER_RULE, split=None
        )
        stored = replace(self.stored, record=replace(self.record, unknown=unknown))
        return Model(self.method, stored, self.device, self.folder)

    def predict(
        self,
        images: ModelInput,
        *,
        top: int = 5,
        threshold: float | None = None,
        nearest: int = 0,
        name_unknowns: bool = False,
        batch_size: int = 64,
        progress: Progress = SILENT,
    ) -> list[ImagePrediction]:
        """The class of each image, or "unknown"; images are paths, file contents (bytes) or Pillow images.

        A single image needs no list. A model of precomputed features takes those instead, as an array (N,D).
        `top`: how many of the most probable classes to list. `threshold`: instead of the model's own. `nearest`: how
        many of the most similar training images to list; the first time, this computes the features of all of them.
        `name_unknowns`: give unknown images the name of the open class whose embedding is nearest.
        """
        check_threshold(threshold)
        check_counts(top=top, nearest=nearest, batch_size=batch_size)
        add_details = prepare_details(self, nearest, name_unknowns, progress)
        logits, features = self._collect(images, ("logits", "features"), batch_size, progress)
        return add_details(self.interpret(logits, top=top, threshold=threshold), features)

    def training_index(self, data: str | Path | Manifest | None = None, progress: Progress = SILENT) -> TrainingIndex:
        """The features of the training images: read from the model's folder, or else computed now and stored there.

        `data`: the dataset that the model was trained on, if it was moved after training.
        """
        if self._index is None:
            from ltds.engine.indexing import open_index

            self._index = open_index(self, data, progress)
        return self._index

    def interpret(
        self, logits: NDArray[np.float32], *, top: int = 5, threshold: float | None = None
    ) -> list[ImagePrediction]:
        """What `predict` says of images with these logits (N,C), of which those of open classes are left out.

        DataError for NaN or infinity: any answer would look like one of the model.
        """
        threshold = self.threshold if threshold is None else threshold
        wrong = [str(row) for row in np.flatnonzero(~self.has_answer(logits))]
        if wrong:
            rule, got = (
                "finite (-inf for classes that are never predicted)",
                f"NaN or infinity in the rows {few(wrong)}",
            )
            raise DataError(expected("the model's logits", rule, got, "Look for extreme values in the inputs."))
        known = np.array(self.task.known_classes)
        names = [self.classes[c] for c in known]
        shown = logits[:, known].astype(np.float64)
        scores = softened_confidence(shown, self.record.unknown.temperature)
        return [_interpret(row, score, names, top, threshold) for row, score in zip(shown, scores, strict=True)]

    def has_answer(self, logits: NDArray[np.float32]) -> NDArray[np.bool_]:
        """(N,) whether each row of logits (N,C) says anything: the largest of the known classes is a finite number."""
        finite: NDArray[np.bool_] = np.isfinite(logits[:, self.task.known_classes].max(axis=1))
        return finite

    def logits(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,C) logits, the same as those that evaluation stores for these images."""
        return self._collect(images, ("logits",), batch_size, progress)[0]

    def features(self, images: ModelInput, *, batch_size: int = 64, progress: Progress = SILENT) -> NDArray[np.float32]:
        """(N,D) features: what the classifier sees."""
        return self._collect(images, ("features",), batch_size, progress)[0]

    def export(
        self,
        out: str | Path,
        *,
        to: ExportFormat = "safetensors",
        check: Sequence[ImageSource] = (),
        nearest: bool = False,
        progress: Progress = SILENT,
    ) -> ExportResult:
        """Write the model to the new folder `out`, with a model card: "safetensors", "onnx" or "torch-export".

        `load_model` reads a folder of safetensors. The file that was written is run and compared with this model, on
        the images `check` or else on random inputs. `nearest`: add what finds the nearest training images (safetensors
        only): their features, names and small copies of them.
        """
        from ltds.engine.export import export

        return export(self, Path(out), to, check, progress, nearest=nearest)

    def _collect(
        self, images: ModelInput, outputs: Sequence[str], batch_size: int, progress: Progress
    ) -> list[NDArray[np.float32]]:
        """These outputs of the method for all images, each with one row per image."""
        check_counts(batch_size=batch_size)
        images = _listed(images)
        if not len(images):
            return [part[:0] for part in self._collect(self._blank(), outputs, 1, SILENT)]
        parts: list[list[NDArray[np.float32]]] = [[] for _ in outputs]
        with progress.track("Predicting", len(images)) as advance, torch.inference_mode():
            for batch in self._batches(images, batch_size):
                prediction = self.method.predict(batch)
                for part, name in zip(parts, outputs, strict=True):
                    part.append(getattr(prediction, name).flatten(1).float().cpu().numpy())
                advance(len(batch))
        return [np.concatenate(part) for part in parts]

    def _blank(self) -> ModelInputs:
        """One input of no meaning, which tells how wide outputs are."""
        dim = self.record.preprocessing.input_dim
        return [Image.new("RGB", (16, 16))] if dim is None else np.zeros((1, dim), np.float32)

    def _batches(self, images: ModelInputs, batch_size: int) -> Iterator[Tensor]:
        """The images as evaluation gives them to the network."""
        for start in range(0, len(images), batch_size):
            raw: Any = images[start : start + batch_size]
            yield self.record.preprocessing(raw).to(self.device)


def _listed(images: Any) -> ModelInputs:
    """The inputs as something that has a length and parts: a single image needs no list, and generators are taken."""
    if is_image(images):
        return [images]
    if isinstance(images, Sequence) and not isinstance(images, bytearray | memoryview):
        return images
    if hasattr(images, "__array__") and np.ndim(images):
        return np.asarray(images)
    if isinstance(images, Iterable) and not isinstance(images, bytearray | memoryview):
        return list(images)
    raise not_an_image(images)


def check_threshold(threshold: float | None) -> None:
    """Refuse a number that no score can reach: a mistake that would make every image "unknown".

    Infinity is allowed: it asks for exactly that.
    """
    if threshold is None or (isinstance(threshold, Real) and (threshold <= 1 or threshold == math.inf)):
        return
    got = f"{threshold:g}" if isinstance(threshold, Real) else repr(threshold)
    remedy = "Choose a number below 1, such as 0.9."
    raise ConfigError(expected("argument 'threshold'", "a score, which is at most 1", got, remedy))


def check_counts(*, top: int = 1, nearest: int = 0, batch_size: int = 1) -> None:
    """Refuse numbers that would list nothing, take other neighbours than the nearest or leave images out."""
    for name, count, least in (("top", top, 1), ("nearest", nearest, 0), ("batch_size", batch_size, 1)):
        if not isinstance(count, Integral):
            rule, remedy = f"a whole number of at least {least}", "Choose such a number."
            raise ConfigError(expected(f"argument '{name}'", rule, repr(count), remedy), arguments=[name])
        if count < least:
            remedy = "Choose a larger number."
            raise ConfigError(expected(f"argument '{name}'", f"at least {least}", count, remedy), arguments=[name])


def prepare_details(model: Model, nearest: int, name_unknowns: bool, progress: Progress) -> AddDetails:
    """What adds names of unknown images and the nearest training images to answers, given the features (N,D).

    What it needs is opened now, or found to be missing, before the network computes anything.
    """
    namer = UnknownNamer(model) if name_unknowns else None
    index = model.training_index(progress=progress) if nearest else None

    def add(answers: list[ImagePrediction], features: NDArray[np.float32]) -> list[ImagePrediction]:
        answers = answers if namer is None else namer(answers, features)
        return answers if index is None else _add_nearest(answers, features, index, nearest)

    return add


def _add_nearest(
    answers: Sequence[ImagePrediction], features: NDArray[np.float32], index: TrainingIndex, count: int
) -> list[ImagePrediction]:
    """The answers with the most similar training images, for images with these features (N,D)."""
    found = index.search(features, count) if len(answers) else []
    return [replace(answer, nearest=near) for answer, near in zip(answers, found, strict=True)]


def _interpret(
    logits: NDArray[np.float64], score: float, names: Sequence[str], top: int, threshold: float | None
) -> ImagePrediction:
    """The answer for one image, from the logits of the known classes (K,) and its score."""
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    order = np.argsort(-logits, kind="stable")[: max(1, top)]
    classes = tuple((names[c], float(probabilities[c])) for c in order)
    unknown = bool(threshold is not None and score < threshold)
    label = UNKNOWN if unknown else classes[0][0]
    return ImagePrediction(label, classes[0][1], float(score), classes, unknown=unknown)
