"""model.json: what a prediction needs besides weights and settings, so that a run alone rebuilds its model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ltds.core.errors import CheckpointError
from ltds.data.inputs import FeatureInputs, ImageInputs
from ltds.engine.preprocessing import (
    FeaturePreprocessing,
    ImagePreprocessing,
    Preprocessing,
    preprocessing_from_dict,
)
from ltds.engine.session import Session

FORMAT = 1


@dataclass(frozen=True)
class UnknownRule:
    """When a model says "unknown": its score is below the threshold, or its best class is an open one.

    `score` names the score, `rule` says how the threshold was chosen and `split` on which images. Without a threshold
    (no validation images), only open classes are called unknown.
    """

    score: str
    threshold: float | None
    rule: str
    split: str | None


@dataclass(frozen=True)
class ModelRecord:
    """How inputs are prepared for the network, and when the model says "unknown"."""

    preprocessing: Preprocessing
    unknown: UnknownRule

    @classmethod
    def from_dict(cls, content: dict[str, Any], file: object) -> ModelRecord:
        """The record, or a CheckpointError that names the file."""
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']}")
            return cls(preprocessing_from_dict(content["preprocessing"]), UnknownRule(**content["unknown"]))
        except (LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"Expected '{file}' to describe a model in format {FORMAT}, but got {type(error).__name__}: {error}. "
                "Train the run again with this version of ltds."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "preprocessing": self.preprocessing.to_dict(),
            "unknown": asdict(self.unknown),
        }


def model_record(session: Session, metrics: dict[str, Any]) -> dict[str, Any]:
    """The record of a session's model; its threshold is the one that metrics.json fixed on source validation."""
    choice = metrics["choices"]["h_fixed"]
    split = choice["split"] if choice["threshold"] is not None else None
    unknown = UnknownRule("max_softmax", choice["threshold"], choice["rule"], split)
    return ModelRecord(_preprocessing(session), unknown).to_dict()


def _preprocessing(session: Session) -> Preprocessing:
    match session.inputs:
        case ImageInputs(evaluate=transform):
            return ImagePreprocessing(session.config.data.decoded_side, transform)
        case FeatureInputs(dim=dim, scale=scale):
            return FeaturePreprocessing(dim, scale)
        case other:
            raise TypeError(f"no preprocessing is known for {type(other).__name__}")
