"""model.json: what a prediction needs besides weights and settings, so that a run alone rebuilds its model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ltds.core.errors import CheckpointError
from ltds.data.transforms import EvalTransform
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
    """`decoded_side`: the shorter side of an image after decoding; `transform`: what follows; `unknown`: see there."""

    decoded_side: int
    transform: EvalTransform
    unknown: UnknownRule

    @classmethod
    def from_dict(cls, content: dict[str, Any], file: object) -> ModelRecord:
        """The record, or a CheckpointError that names the file."""
        try:
            if content["format"] != FORMAT:
                raise ValueError(f"format {content['format']}")
            return cls(
                decoded_side=int(content["decoded_side"]),
                transform=EvalTransform.from_dict(content["transform"]),
                unknown=UnknownRule(**content["unknown"]),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"Expected '{file}' to describe a model in format {FORMAT}, but got {type(error).__name__}: {error}. "
                "Train the run again with this version of ltds."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "decoded_side": self.decoded_side,
            "transform": self.transform.to_dict(),
            "unknown": asdict(self.unknown),
        }


def model_record(session: Session, metrics: dict[str, Any]) -> dict[str, Any]:
    """The record of a session's model; its threshold is the one that metrics.json fixed on source validation."""
    choice = metrics["choices"]["h_fixed"]
    split = choice["split"] if choice["threshold"] is not None else None
    unknown = UnknownRule("max_softmax", choice["threshold"], choice["rule"], split)
    return ModelRecord(session.config.data.decoded_side, session.transform, unknown).to_dict()
