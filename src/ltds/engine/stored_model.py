"""StoredModel: all that a run or a model directory says about a model, besides its weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ltds.core.task import Task
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.model_record import ModelRecord
from ltds.evaluation.class_groups import SHOTS
from ltds.evaluation.protocol import ANSWERS
from ltds.semantics.embeddings import ClassEmbeddings

SHOT_ANSWERS = ("known_called_unknown", "named_right")
LATER_SHARES = ("mean_confidence", "auroc_deployed", *ANSWERS)
LATER_COUNTS = ("tested_open_classes",)


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What rebuilds a method, prepares its inputs and reads its outputs; and what its model card tells.

    `scores`: the test results (see `scores_of`), empty where they are not known; "unseen", for the model of a series:
    those of its other runs, each on the domain that it was trained without. `data_identity`: that of the
    manifest it was trained on, "" where it was not recorded.
    """

    config: RunConfig
    task: Task
    record: ModelRecord
    embeddings: ClassEmbeddings | None
    scores: dict[str, Any]
    data_identity: str

    def trained_on(self, manifest: Manifest) -> bool | None:
        """Whether this is the dataset that the model was trained on; None where that was not recorded."""
        if not self.data_identity:
            return None
        return self.data_identity in (manifest.identity, manifest.checksum)  # early versions recorded the checksum


def checked_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores as `scores_of` makes them, from a file; LookupError, TypeError or ValueError for anything else."""
    if scores:
        for row in (*scores["per_domain"].values(), *scores.get("unseen", {}).values()):
            _check_row(row, ("accuracy", "macro_accuracy", "auroc"), ("known_images", "open_images"))
            _check_row(row, _recorded(LATER_SHARES, row), _recorded(LATER_COUNTS, row))
        for shot, row in scores["per_shot"].items():
            if shot not in SHOTS:
                raise ValueError(f"scores of '{shot}', which is none of {', '.join(SHOTS)}")
            _check_row(row, ("accuracy", *_recorded(SHOT_ANSWERS, row)), ("classes", "images"))
    return dict(scores)


def _check_row(row: Mapping[str, Any], shares: Iterable[str], counts: Iterable[str]) -> None:
    for name in shares:
        if row[name] is not None and not 0 <= row[name] <= 1:
            raise ValueError(f"scores with {name} {row[name]!r}, which is neither from 0 to 1 nor null")
    for name in counts:
        if not isinstance(row[name], int) or row[name] < 0:
            raise ValueError(f"scores with {name} {row[name]!r}, which is not a number of them")


def scores_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """The results in a metrics.json, by domain and by shot group, each with the number of images it rests on."""
    per_shot = {}
    for shot in SHOTS:
        rows = [row for row in metrics["per_class"] if row["shot"] == shot]
        images = sum(row["images"] for row in rows)
        summary = metrics["summary"]
        answers = {name: summary[f"{name}_{shot}"] for name in SHOT_ANSWERS if f"{name}_{shot}" in summary}
        per_shot[shot] = {"accuracy": summary[shot], **answers, "classes": len(rows), "images": images}
    return {
        "summary": metrics["summary"],
        "per_domain": domain_scores(metrics),
        "per_shot": per_shot,
    }


def domain_scores(metrics: dict[str, Any]) -> dict[str, Any]:
    """The results in a metrics.json for each domain."""
    numbers = ("accuracy", "macro_accuracy", *SHOTS, "auroc", "known_images", "open_images")
    return {
        domain: {name: row[name] for name in (*numbers, *_recorded((*LATER_SHARES, *LATER_COUNTS), row))}
        for domain, row in metrics["per_domain"].items()
    }


def _recorded(names: Iterable[str], row: Mapping[str, Any]) -> list[str]:
    """Those of these numbers that a row has: metrics from before they were computed lack them."""
    return [name for name in names if name in row]
