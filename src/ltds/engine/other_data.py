"""A trained model on another dataset with the same class names: a new site, a new camera, next year's images."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ltds.core.errors import ConfigError, DataError, LtdsWarning, expected
from ltds.core.files import write_json, write_text
from ltds.core.progress import SILENT, Progress
from ltds.core.text import composed
from ltds.data.content import fingerprint, sampled_content
from ltds.data.manifest import Manifest
from ltds.engine.model import Model
from ltds.engine.predict_files import FilePredictions, predict_files
from ltds.engine.seen_images import seen_by

FILE = "evaluation.json"
FORMAT = 1
EvaluatedSplit = Literal["all", "test"]


@dataclass(frozen=True)
class Judged:
    """One image: its true class and domain, what the model said, and whether its class is one that the model knows.

    `unknown`: the model called it "unknown". The label does not tell: a class may have that name.
    """

    path: str
    truth: str
    domain: str
    label: str
    best: str
    confidence: float
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
    trained = [name for c, name in enumerate(model.classes) if c not in model.task.open_classes]
    names = _as_in_model(manifest.classes, trained)
    classes = _match_classes(manifest.name, names, trained)
    own = model.stored.trained_on(manifest)
    rows = np.arange(len(manifest)) if split == "all" else manifest.test_rows(model.task.held_out if own else None)
    if not len(rows):
        raise DataError(
            f"Expected '{manifest.name}' to have images in the split 'test', but got none. Evaluate all images."
        )
    files = [manifest.root / manifest.paths[row] for row in rows]
    if not own:
        _refuse_training_images(model, manifest, files)
    elif split == "all":
        raise ConfigError(
            f"Expected another dataset than the model was trained on, but '{manifest.name}' is that one, and most of "
            "its images were trained on. Evaluate its test images only.",
            arguments=["split=test"],
        )
    row_of = dict(zip(files, rows.tolist(), strict=True))
    predictions = predict_files(model, files, top=1, batch_size=batch_size, progress=progress)
    judged = []
    for item in predictions.predicted:
        row, answer = row_of[item.file], item.answer
        truth, domain = names[manifest.labels[row]], manifest.domains[manifest.domain_ids[row]]
        said = (answer.label, answer.classes[0][0], answer.confidence)
        judged.append(Judged(manifest.paths[row], truth, domain, *said, truth in classes["matched"], answer.unknown))
    unknown = model.record.unknown
    metrics = {
        "format": FORMAT,
        "data": {
            "name": manifest.name,
            "checksum": manifest.checksum,
            "content": sampled_content(manifest),
            "split": split,
            "images": len(judged),
            "skipped": len(predictions.skipped),
        },
        "unknown": {"threshold": unknown.threshold, "rule": unknown.rule, "split": unknown.split},
        "classes": classes,
        "overall": _numbers(judged),
        "per_domain": {d: _numbers([j for j in judged if j.domain == d]) for d in manifest.domains},
        "per_class": {c: _numbers([j for j in judged if j.truth == c]) for c in names},
    }
    return metrics, judged, predictions


def write_evaluation(folder: Path, metrics: dict[str, Any], judged: Sequence[Judged]) -> None:
    """Write predictions.csv, a line for each image, and evaluation.json."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["image", "domain", "class", "known", "label", "unknown", "most_probable", "confidence"])
    for j in judged:
        known, unknown = ("yes" if flag else "no" for flag in (j.known, j.unknown))
        table.writerow([j.path, j.domain, j.truth, known, j.label, unknown, j.best, j.confidence])
    write_text(folder / "predictions.csv", text.getvalue())
    write_json(folder / FILE, metrics)


def evaluation_folder(model: Path, metrics: dict[str, Any]) -> Path:
    """Where the evaluation of a run, or of a model directory, goes unless the user says otherwise: evaluations/NAME.

    If NAME holds an evaluation on other images, as of another folder called "images", a longer name keeps both. The
    same evaluation goes to the same folder again.
    """
    data = metrics["data"]
    folder = model / "evaluations" / (re.sub(r"[^\w.-]+", "-", data["name"]).strip(".-") or "data")
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
    say "unknown". `known_called_unknown` is an error, `open_called_unknown` is right.
    """
    images = list(judged)
    known, opened = [j for j in images if j.known], [j for j in images if not j.known]
    by_class: dict[str, list[bool]] = {}
    for j in known:
        by_class.setdefault(j.truth, []).append(j.best == j.truth)
    return {
        "known_images": len(known),
        "accuracy": _share(j.best == j.truth for j in known),
        "macro_accuracy": float(np.mean([np.mean(hits) for hits in by_class.values()])) if by_class else None,
        "named_right": _share(j.best == j.truth and not j.unknown for j in known),
        "known_called_unknown": _share(j.unknown for j in known),
        "open_images": len(opened),
        "open_called_unknown": _share(j.unknown for j in opened),
    }


def _share(hits: Iterable[bool]) -> float | None:
    values = list(hits)
    return sum(values) / len(values) if values else None


def _as_in_model(classes: Sequence[str], trained: Sequence[str]) -> list[str]:
    """The classes of a dataset, spelled as the model spells them: an accent in another encoding is no other class."""
    spelled = {composed(name): name for name in trained}
    return [name if name in trained else spelled.get(composed(name), name) for name in classes]


def _match_classes(dataset: str, classes: Sequence[str], trained: Sequence[str]) -> dict[str, list[str]]:
    """Which classes of the dataset the model knows, which it does not, and which of the model's are not there."""
    matched = [name for name in dict.fromkeys(classes) if name in trained]
    if not matched:
        some = ", ".join(f"'{name}'" for name in trained[:5])
        got = ", ".join(f"'{name}'" for name in classes[:5])
        remedy = "Classes are matched by name: rename those of the dataset."
        rule = f"one with classes that the model knows ({some}, ...)"
        raise DataError(expected(f"dataset '{dataset}'", rule, f"{got}, ...", remedy))
    extra = [name for name in classes if name not in trained]
    alike = {_plain(name): name for name in trained}
    return {
        "matched": matched,
        "missing": [name for name in trained if name not in classes],
        "open": extra,
        "spelled_differently": [f"{name} ({alike[_plain(name)]})" for name in extra if _plain(name) in alike],
    }


def _plain(name: str) -> str:
    return re.sub(r"[\s+_\-]+", " ", unicodedata.normalize("NFKC", name)).strip().casefold()


def _refuse_training_images(model: Model, manifest: Manifest, files: Sequence[Path]) -> None:
    seen = seen_by(model)
    if seen is None:
        warnings.warn(
            f"Whether images of '{manifest.name}' were training images could not be checked: the model does not tell "
            "which images it has seen. If some were, the numbers are too good.",
            LtdsWarning,
            stacklevel=2,
        )
        return
    repeated = np.array(files)[np.isin([_fingerprint(file) for file in files], seen)]
    if len(repeated):
        root = model.stored.config.data.root
        there = bool(root) and (Path(root) / "manifest.json").is_file()
        of = f" of the dataset '{root}'" if there else ""
        raise ConfigError(
            f"Expected images that the model has not seen in training, but it has seen {len(repeated)} of the "
            f"{len(files)} images of '{manifest.name}', such as '{repeated[0]}': they are training or validation "
            f"images{of}, or copies of them. Evaluate the test images of the dataset that the model was trained on, or "
            "other images.",
            arguments=[f"data={root}", "split=test"] if there else ["data", "split=test"],
        )


def _fingerprint(file: Path) -> np.uint64:
    """0 for a file that cannot be read: it is named and skipped later."""
    try:
        return np.uint64(fingerprint(file))
    except OSError:
        return np.uint64(0)
