"""A trained model on another dataset with the same class names: a new site, a new camera, next year's images."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.files import write_csv, write_json
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import EVALUATIONS_FOLDER
from ltds.core.text import is_utf8, path_cell, printable
from ltds.data.content import sampled_content
from ltds.data.manifest import Manifest
from ltds.engine.class_matching import as_in_model, match_classes
from ltds.engine.model import Model
from ltds.engine.model_directory import is_model_directory
from ltds.engine.predict_files import FilePredictions, PredictedFile, predict_files
from ltds.engine.seen_images import leave_out_seen
from ltds.evaluation.openset import OpenSetScores, auroc
from ltds.evaluation.threshold_table import threshold_table

FILE = "evaluation.json"
FORMAT = 1
EvaluatedSplit = Literal["all", "test"]


@dataclass(frozen=True)
class Judged:
    """One image: its true class and domain, what the model said, and whether its class is one that the model knows.

    `score` is what the threshold for "unknown" is compared with. `unknown`: the model called it so; the label does not
    tell, because a class may have that name.
    """

    path: str
    truth: str
    domain: str
    label: str
    best: str
    confidence: float
    score: float
    known: bool
    unknown: bool


def evaluate_on(
    model: Model,
    manifest: Manifest,
    *,
    split: EvaluatedSplit = "all",
    batch_size: int = 64,
    progress: Progress = SILENT,
) -> tuple[dict[str, Any], list[Judged], FilePredictions]:
    """The numbers of evaluation.json, what they were computed from, and the predictions with the skipped files.

    Classes match by name. An image of a class that the model was not trained on counts as open: right is "unknown".
    The test images of the dataset that the model was trained on are those of the run: they may include every image of
    the held-out domain.
    """
    if split not in get_args(EvaluatedSplit):
        raise ConfigError(expected("argument 'split'", "'all' or 'test'", f"'{split}'", "Leave it out for all images."))
    manifest = _with_printable_names(manifest)
    trained = [model.classes[c] for c in model.task.known_classes]
    names = as_in_model(manifest.classes, trained)
    classes = match_classes(manifest.name, names, trained)
    rows, seen = _rows_to_evaluate(model, manifest, split)
    row_of = {manifest.root / manifest.paths[row]: row for row in rows}
    files = [manifest.root / manifest.paths[row] for row in rows]
    predictions = predict_files(model, files, top=1, batch_size=batch_size, progress=progress)
    known = set(classes["matched"])
    judged = [_judge(item, manifest, row_of[item.file], names, known) for item in predictions.predicted]
    unknown, scores = model.record.unknown, _scores(judged)
    metrics = {
        "format": FORMAT,
        "data": _described(manifest, split, len(judged), len(predictions.skipped), seen),
        "unknown": {
            "threshold": unknown.threshold,
            "rule": unknown.rule,
            "split": unknown.split,
            "auroc": auroc(scores),
            "thresholds": threshold_table(scores, unknown.threshold),
        },
        "classes": classes,
        **_metrics(judged, manifest.domains, names),
    }
    return metrics, judged, predictions


def _with_printable_names(manifest: Manifest) -> Manifest:
    """The dataset with names that JSON, tables and pages can hold: those of folders may have other bytes than UTF-8."""
    names = (manifest.name, *manifest.classes, *manifest.domains)
    if all(map(is_utf8, names)):
        return manifest
    classes, domains = (tuple(map(printable, names)) for names in (manifest.classes, manifest.domains))
    return replace(manifest, name=printable(manifest.name), classes=classes, domains=domains)


def _rows_to_evaluate(model: Model, manifest: Manifest, split: EvaluatedSplit) -> tuple[list[int], int]:
    """The rows of the split that the model has not seen in training, and how many more there are."""
    own = model.stored.trained_on(manifest)
    test = manifest.test_rows(model.task.held_out if own else None)
    rows = _each_file_once(manifest) if split == "all" else [int(row) for row in test]
    if not rows:
        raise DataError(
            f"Expected '{manifest.name}' to have images in the split 'test', but got none. Evaluate all images."
        )
    if not own:
        unseen = leave_out_seen(model, manifest, rows)
        return unseen, len(rows) - len(unseen)
    if split == "all":
        raise ConfigError(
            f"Expected another dataset than the model was trained on, but '{manifest.name}' is that one, and some of "
            "its images were trained on. Evaluate its test images only.",
            arguments=["split=test"],
        )
    return rows, 0


def _each_file_once(manifest: Manifest) -> list[int]:
    """All rows; a file that is listed twice counts once."""
    first: dict[str, int] = {}
    for row, path in enumerate(manifest.paths):
        first.setdefault(posixpath.normpath(path), row)
    return list(first.values())


def _judge(item: PredictedFile, manifest: Manifest, row: int, names: Sequence[str], known: Collection[str]) -> Judged:
    """What the model said of the image in a row. `names`: the classes of the manifest, spelled as in the model."""
    truth, answer = names[manifest.labels[row]], item.answer
    return Judged(
        path=manifest.paths[row],
        truth=truth,
        domain=manifest.domains[manifest.domain_ids[row]],
        label=answer.label,
        best=answer.classes[0][0],
        confidence=answer.confidence,
        score=answer.score,
        known=truth in known,
        unknown=answer.unknown,
    )


def _scores(judged: Sequence[Judged]) -> OpenSetScores:
    """What the threshold is compared with, for all images."""
    score = np.array([j.score for j in judged], dtype=np.float64)
    correct = np.array([j.best == j.truth for j in judged], dtype=np.bool_)
    known = np.array([j.known for j in judged], dtype=np.bool_)
    return OpenSetScores(score, correct, known, np.zeros(len(judged), dtype=np.bool_))


def _described(manifest: Manifest, split: EvaluatedSplit, images: int, skipped: int, seen: int) -> dict[str, Any]:
    """Which images were evaluated. `skipped`: could not be read; `seen`: left out, because they were trained on."""
    return {
        "name": manifest.name,
        "checksum": manifest.checksum,
        "content": sampled_content(manifest),
        "split": split,
        "images": images,
        "skipped": skipped,
        "seen_in_training": seen,
    }


def _metrics(judged: Sequence[Judged], domains: Sequence[str], classes: Sequence[str]) -> dict[str, Any]:
    of_domain: dict[str, list[Judged]] = {domain: [] for domain in domains}
    of_class: dict[str, list[Judged]] = {name: [] for name in classes}
    for j in judged:
        of_domain[j.domain].append(j)
        of_class[j.truth].append(j)
    return {
        "overall": _numbers(judged),
        "per_domain": {domain: _numbers(of_it) for domain, of_it in of_domain.items()},
        "per_class": {name: _numbers(of_it) for name, of_it in of_class.items()},
    }


def write_evaluation(folder: Path, metrics: dict[str, Any], judged: Sequence[Judged]) -> None:
    """Write predictions.csv, a line for each image, and evaluation.json."""
    columns = ["image", "domain", "class", "known", "label", "unknown", "most_probable", "confidence", "score"]
    rows: list[list[Any]] = [columns]
    for j in judged:
        known, unknown = ("yes" if flag else "no" for flag in (j.known, j.unknown))
        rows.append([path_cell(j.path), j.domain, j.truth, known, j.label, unknown, j.best, j.confidence, j.score])
    write_csv(folder / "predictions.csv", rows)
    write_json(folder / FILE, metrics)


def evaluations_of(model: Path) -> Path:
    """Where evaluations go unless the user says otherwise: into the run, but beside a model directory.

    A model directory is given to others, who must not get the names and pictures of the images that it was tested on.
    """
    if is_model_directory(model):
        named = model if model.name not in ("", "..") else model.resolve()
        return named.with_name(f"{named.name}-{EVALUATIONS_FOLDER}")
    return model / EVALUATIONS_FOLDER


def evaluation_folder(parent: Path, metrics: dict[str, Any], threshold: float | None = None) -> Path:
    """The folder NAME of one evaluation, named after its images and, where the user chose it, its threshold.

    If NAME holds an evaluation on other images, as of another folder called "images", a longer name keeps both. The
    same evaluation goes to the same folder again.
    """
    data = metrics["data"]
    name = re.sub(r"[^\w.-]+", "-", data["name"]).strip(".-") or "data"
    folder = parent / (name if threshold is None else f"{name}-threshold-{threshold}")
    if not (folder / FILE).is_file() or _is_same(folder / FILE, data):
        return folder
    images = hashlib.sha256(f"{data['checksum']} {data['content']}".encode()).hexdigest()
    return folder.with_name(f"{folder.name}-{data['split']}-{images[:8]}")


def _is_same(file: Path, data: dict[str, Any]) -> bool:
    """Whether the stored evaluation is one on these images; files from before "content" was recorded lack it."""
    try:
        before = json.loads(file.read_bytes())["data"]
        return all(before.get(key, data[key]) == data[key] for key in ("checksum", "split", "content"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):  # no evaluation of ltds
        return False


def _numbers(judged: Iterable[Judged]) -> dict[str, Any]:
    """Shares with the number of images behind them; None without images.

    `accuracy`: the most probable class is the true one, of known images. `named_right`: the same, and the model did not
    say "unknown". `known_called_unknown` is an error, `open_called_unknown` is right. `macro_accuracy` is the mean
    over the `macro_classes` known classes that have images.
    """
    images = list(judged)
    known, opened = [j for j in images if j.known], [j for j in images if not j.known]
    by_class: dict[str, list[bool]] = {}
    for j in known:
        by_class.setdefault(j.truth, []).append(j.best == j.truth)
    return {
        "known_images": len(known),
        "accuracy": _share(j.best == j.truth for j in known),
        "macro_classes": len(by_class),
        "macro_accuracy": float(np.mean([np.mean(hits) for hits in by_class.values()])) if by_class else None,
        "named_right": _share(j.best == j.truth and not j.unknown for j in known),
        "known_called_unknown": _share(j.unknown for j in known),
        "open_images": len(opened),
        "open_called_unknown": _share(j.unknown for j in opened),
    }


def _share(hits: Iterable[bool]) -> float | None:
    values = list(hits)
    return sum(values) / len(values) if values else None
