"""What a model card says of test results: sentences and tables, with the images that they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ltds.core.task import Task
from ltds.core.text import count
from ltds.engine.stored_model import SHOT_ANSWERS, StoredModel
from ltds.evaluation.class_groups import SHOT_MEANING
from ltds.evaluation.metrics import FEW_IMAGES

COLUMNS = {
    "accuracy": "accuracy",
    "macro_accuracy": "macro accuracy",
    "known_images": "images",
    "mean_confidence": "confidence",
    "known_called_unknown": 'called "unknown"',
    "named_right": "named right",
    "auroc_deployed": "AUROC",
    "open_called_unknown": 'unknown classes called "unknown"',
}


def card_results(model: StoredModel) -> Iterator[str]:
    yield "## How good it is"
    if not model.scores:
        yield "No test results were stored with this model."
        return
    yield (
        "On test images. Accuracy: the share of images of known classes whose class is named correctly, before the "
        'model may say "unknown". Macro accuracy: the mean over classes, so that rare ones count as much as common '
        "ones."
    )
    yield from _about_unknown(model)
    yield ""
    if unseen := model.scores.get("unseen"):
        yield (
            "**In a domain that it was not trained on.** Each row is a model that was trained as this one, but without "
            "that domain. Expect similar results on images from elsewhere."
        )
        yield ""
        yield from _domain_table("domain left out", unseen)
        yield ""
        yield "**In the domains that it was trained on:**"
        yield ""
    if model.task.trained_in_test:
        yield f"{model.task.trained_in_test} test images of the trained domains were training images, too."
        yield ""
    trained = trained_domains(model.task)
    named = {d if d in trained else f"{d} (never trained on)": row for d, row in model.scores["per_domain"].items()}
    yield from _domain_table("domain", named)
    yield ""
    shots = model.scores["per_shot"]
    rows = [
        [
            f"{s} ({SHOT_MEANING[s]} training images)",
            v["accuracy"],
            *map(v.get, SHOT_ANSWERS),
            v["classes"],
            v["images"],
        ]
        for s, v in shots.items()
    ]
    answers = [COLUMNS[name] for name in SHOT_ANSWERS]
    yield from _filled_table(["classes with", "macro accuracy", *answers, "classes", "images"], rows)
    yield ""
    yield f"Where a number rests on fewer than {FEW_IMAGES} images, it says little."


def _about_unknown(model: StoredModel) -> Iterator[str]:
    """What the columns about "unknown" mean, of those that the tables have."""
    rows = _domain_rows(model)
    if any(row.get("named_right") is not None for row in rows):
        yield (
            'Named right: as accuracy, but without the images that it calls "unknown", as it is used. Confidence: its '
            "mean over the same images."
        )
    if any(row.get("auroc_deployed") is not None for row in rows):
        yield (
            "AUROC: how often an image of a known class gets a higher score than one of an unknown class, by the score "
            'that decides about "unknown" (50 % is chance).'
        )
    if not any(row["open_images"] for row in rows):
        yield "It was not tested on images of unknown classes: how often it notices one is not known."


def _domain_rows(model: StoredModel) -> list[Mapping[str, Any]]:
    """The rows of the tables of domains."""
    scores = model.scores
    return [*scores["per_domain"].values(), *scores.get("unseen", {}).values()] if scores else []


def _domain_table(first: str, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    rows = [[name, *map(row.get, COLUMNS), _open_images(row)] for name, row in scores.items()]
    yield from _filled_table([first, *COLUMNS.values(), "images of unknown classes"], rows)


def _open_images(row: Mapping[str, Any]) -> str | None:
    images, classes = row["open_images"], row.get("tested_open_classes")
    if not images:
        return None
    return str(images) if classes is None else f"{images} of {count(classes, 'class')}"


def tested_open_classes(model: StoredModel) -> int:
    """How many classes that are unknown to the model it was tested on, in the domain with most; 0 if not recorded."""
    return max((row.get("tested_open_classes", 0) for row in _domain_rows(model)), default=0)


def trained_domains(task: Task) -> dict[str, int]:
    """The domains with training images, and how many; a source without any is a site for testing."""
    images = task.counts.sum(axis=1).tolist()
    return {domain: number for domain, number in zip(task.sources, images, strict=True) if number}


def confidence_gaps(model: StoredModel) -> str:
    """The mean confidence against the accuracy in domains that the model, or one trained alike, has never seen."""
    scores, held_out = model.scores, model.task.held_out
    unseen = scores.get("unseen") or ({held_out: scores["per_domain"][held_out]} if scores and held_out else {})
    gaps = [
        f"{_percent(row['mean_confidence'])} against {_percent(row['accuracy'])} right on {name}"
        for name, row in unseen.items()
        if row.get("mean_confidence") is not None
    ]
    return f" Where it was not trained, its mean confidence was {', '.join(gaps)}." if gaps else ""


def _filled_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """The table without columns of which no row has a value: of no such images, or not recorded. Shares as percent."""
    filled = [i for i in range(len(header)) if any(row[i] is not None for row in rows)]
    yield f"| {' | '.join(header[i] for i in filled)} |"
    yield f"|{'---|' * len(filled)}"
    for row in rows:
        cells = [str(row[i]) if isinstance(row[i], int | str) else _percent(row[i]) for i in filled]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"
