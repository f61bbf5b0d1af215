"""The content of an image file to what the page shows of it."""

from __future__ import annotations

import base64
import io
import math
import threading
from typing import Any

from ltds.core.errors import DataError
from ltds.core.text import score_decimals
from ltds.data.decode import DAMAGE, open_image
from ltds.engine.indexing import can_index
from ltds.engine.model import ImagePrediction, Model, check_counts, check_threshold
from ltds.engine.predict_files import require_images
from ltds.engine.write_predictions import describe_nearest
from ltds.serving.limits import ServeLimits

JPEG = b"\xff\xd8\xff"


class RefusedImageError(DataError):
    """An image that the model is not asked about; the message is for the visitor."""


class Answerer:
    """A model that answers one image at a time, whoever asks."""

    def __init__(self, model: Model, limits: ServeLimits, *, top: int, threshold: float | None, nearest: int) -> None:
        require_images(model)
        check_threshold(threshold)
        check_counts(top=top, nearest=nearest)
        self.model, self.limits = model, limits
        self.top, self.threshold, self.nearest = top, threshold, nearest
        self._one_at_a_time = threading.Lock()  # an image may take a gigabyte, and a network takes every core

    @property
    def _threshold(self) -> float | None:
        """The one in use, as JSON has it."""
        return _as_number(self.model.threshold if self.threshold is None else self.threshold)

    def about(self) -> dict[str, Any]:
        """What the page says of the model and of its limits."""
        model, task = self.model, self.model.task
        rule = model.record.unknown
        return {
            "method": model.stored.config.method_name,
            "dataset": task.name,
            "classes": [name for c, name in enumerate(model.classes) if c not in task.open_classes],
            "domains": list(task.sources),
            "threshold": self._threshold,
            "rule": rule.rule if self.threshold is None else "chosen by whoever started this server",
            "nearest": self.nearest,
            "most_bytes": self.limits.most_bytes,
        }

    def answer(self, content: bytes) -> dict[str, Any]:
        """What the model says of one image; RefusedImageError if it cannot be read or is too large."""
        try:
            with self._one_at_a_time:
                self._check(content)
                (prediction,) = self.model.predict(
                    [content], top=self.top, threshold=self.threshold, nearest=self.nearest
                )
        except RefusedImageError:
            raise
        except DataError as error:
            raise RefusedImageError(error.reason) from error
        return self._described(prediction)

    def _check(self, content: bytes) -> None:
        """Refuse an image by its header, before its pixels take memory."""
        most = f"at most {self.limits.most_pixels / 1e6:g} million are taken"
        try:
            with open_image(io.BytesIO(content)) as image:
                pixels = image.width * image.height
        except DataError as error:
            raise RefusedImageError(f"too many pixels; {most}") from error
        except DAMAGE as error:
            raise RefusedImageError("not an image that can be read (JPEG, PNG, WebP, GIF, BMP, TIFF, ...)") from error
        if pixels > self.limits.most_pixels:
            raise RefusedImageError(f"{pixels / 1e6:.1f} million pixels; {most}")

    def _described(self, prediction: ImagePrediction) -> dict[str, Any]:
        return {
            "label": prediction.label,
            "unknown": prediction.unknown,
            "confidence": prediction.confidence,
            "score": prediction.score,
            "reason": self._reason(prediction),
            "classes": [{"class": name, "probability": share} for name, share in prediction.classes],
            "nearest": [
                {**describe_nearest(image), "picture": self._picture(image.row)} for image in prediction.nearest
            ],
        }

    def _reason(self, prediction: ImagePrediction) -> str:
        """Why the answer is "unknown", in numbers that differ; "" where it is a class."""
        if not prediction.unknown or self._threshold is None:
            return ""
        decimals = score_decimals(self._threshold, [prediction.score])
        return f"score {prediction.score:.{decimals}f}, below {self._threshold:.{decimals}f}"

    def _picture(self, row: int) -> str | None:
        content = self.model.training_index().thumbnail(row)
        if content is None or not content.startswith(JPEG):
            return None
        return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"


def _as_number(threshold: float | None) -> float | None:
    """The threshold as JSON has it, which knows no infinity: None for never "unknown", and 2 for always."""
    return None if threshold is None or threshold == -math.inf else min(threshold, 2.0)


def nearest_shown(model: Model, wanted: int | None) -> int:
    """How many training images to show: as wanted, or else three where they are at hand."""
    if wanted is not None:
        return wanted
    return 3 if can_index(model) else 0
