"""model.json: what a prediction needs besides weights and settings, so that a run alone rebuilds its model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.data.activations import ActivationInputs
from ltds.data.inputs import FeatureInputs, ImageInputs
from ltds.engine.preprocessing import (
    FeaturePreprocessing,
    ImagePreprocessing,
    Preprocessing,
    frozen_to_dict,
    preprocessing_from_dict,
)
from ltds.engine.session import Session
from ltds.evaluation.metrics import FEW_IMAGES

FORMAT = 2


@dataclass(frozen=True)
class UnknownRule:
    """When a model says "unknown": its score is below the threshold.

    The score is the largest softmax value of the logits of known classes, divided by `temperature`. `rule` says how the
    threshold was chosen and `split` on which images; `images`: on how many, None where that was not recorded. Without a
    threshold (no correctly classified validation image), the model never says "unknown".
    """

    score: str
    temperature: float
    threshold: float | None
    rule: str
    split: str | None
    images: int | None = None

    def __post_init__(self) -> None:
        """Refuse what a damaged file may hold: an answer would fail, or be "unknown" for every image."""
        if not _is_number(self.temperature) or self.temperature <= 0:
            raise ValueError(f"the temperature {self.temperature!r}, which is no number above 0")
        if self.threshold is not None and not _is_number(self.threshold):
            raise ValueError(f"the threshold {self.threshold!r}, which is neither a number nor null")
        if self.images is not None and (type(self.images) is not int or self.images < 0):
            raise ValueError(f"a threshold chosen on {self.images!r} images, which is no number of them")

    @property
    def doubt(self) -> str:
        """What to know, and to do, about a threshold that rests on too few images; empty for any other."""
        if self.threshold is None or self.images is None or self.images >= FEW_IMAGES:
            return ""
        basis = "one validation image" if self.images == 1 else f"{self.images} validation images"
        return (
            f"The threshold for 'unknown' is a guess: it rests on {basis} that the model classifies correctly, and "
            f"fewer than {FEW_IMAGES} say little. Before you rely on it, predict images whose class you know, look at "
            "how many are called 'unknown', and give a threshold of your own. Or train again with more validation "
            "images."
        )


@dataclass(frozen=True)
class ModelRecord:
    """How inputs are prepared for the network, and when the model says "unknown"."""

    preprocessing: Preprocessing
    unknown: UnknownRule

    @classmethod
    def from_dict(
        cls, content: dict[str, Any], file: Path, frozen_weights: Path, device: torch.device | None = None
    ) -> ModelRecord:
        """The record, or a CheckpointError that names the file."""
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']}")
            preprocessing = preprocessing_from_dict(content["preprocessing"], frozen_weights, device)
            return cls(preprocessing, UnknownRule(**content["unknown"]))
        except CheckpointError:
            raise
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(
                f"Expected '{file}' to describe a model in format {FORMAT}, but got {type(error).__name__}: {error}. "
                "Train the run again with this version of ltds."
            ) from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def model_record(session: Session, metrics: dict[str, Any]) -> dict[str, Any]:
    """The record of a session's model; its threshold is the one that metrics.json fixed on source validation."""
    choice = metrics["choices"]["h_fixed"]
    split = choice["split"] if choice["threshold"] is not None else None
    chosen = (choice["score"], choice["temperature"], choice["threshold"], choice["rule"], split)
    unknown = UnknownRule(*chosen, choice.get("images"))
    return {"format": FORMAT, "preprocessing": _preprocessing(session), "unknown": asdict(unknown)}


def unknown_rule(run: RunDirectory) -> UnknownRule:
    """When the model of a finished run says "unknown"."""
    return UnknownRule(**run.read_model()["unknown"])


def takes_vectors(run: RunDirectory) -> bool:
    """Whether the model of a run or of an export takes feature vectors of the user's own, and no images."""
    return bool(run.read_model()["preprocessing"]["kind"] == "features")


def _preprocessing(session: Session) -> dict[str, Any]:
    frozen = session.frozen
    match session.inputs:
        case ImageInputs(evaluate=transform):
            return ImagePreprocessing(session.config.data.decoded_side, transform).to_dict()
        case FeatureInputs(dim=dim, scale=scale):
            features = FeaturePreprocessing(dim, scale).to_dict()
            return frozen_to_dict(frozen.images, frozen.network, features) if frozen else features
        case ActivationInputs() if frozen:
            return frozen_to_dict(frozen.images, frozen.network, None)
        case other:
            raise TypeError(f"no preprocessing is known for {type(other).__name__}")
