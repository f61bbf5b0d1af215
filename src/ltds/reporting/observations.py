"""From a run's stored predictions and features to the arrays that figures draw. None where a run has none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import LtdsError
from ltds.data.manifest import Manifest
from ltds.evaluation.features import FeatureTable
from ltds.evaluation.metrics import calibration_bins, expected_calibration_error, harmonic
from ltds.evaluation.openset import Verdicts, oscr_curve, rates
from ltds.evaluation.table import PredictionTable
from ltds.reporting.figures.embedding_map import Cloud, flattened
from ltds.reporting.figures.frechet import Drift
from ltds.reporting.figures.open_set import OpenSet
from ltds.reporting.figures.reliability import Reliability
from ltds.reporting.figures.retrieval import Retrieved, Shot, nearest
from ltds.reporting.run import Run
from ltds.reporting.series import head_to_tail

MAPPED = 600  # images of a t-SNE: more take long, and hide each other
POINTS = 200  # of a curve over thresholds
THUMBNAIL = 96


def drift_of(runs: Iterable[Run]) -> Drift | None:
    """Distances between source domains over training, means over these runs at each epoch."""
    found: dict[int, list[tuple[float, float, float]]] = {}
    for line in (line for run in runs for line in run.journal if line.get("kind") == "frechet"):
        distances = list(line["pairs"].values())
        found.setdefault(int(line["epoch"]) + 1, []).append((line["mean"], min(distances), max(distances)))
    if not found:
        return None
    epochs = sorted(found)
    values = np.array([np.mean(found[epoch], axis=0) for epoch in epochs], dtype=np.float64)
    return Drift(np.array(epochs, dtype=np.float64), *values.T)


def verdicts_of(run: Run) -> Verdicts | None:
    """What the run's model said of the test images."""
    try:
        table = PredictionTable.load(run.directory.predictions_file("test"))
    except LtdsError:
        return None
    return Verdicts.of(table.probabilities, table.labels, run.task.open_classes)


def open_set_of(run: Run, verdicts: Verdicts) -> OpenSet | None:
    """Scores, rates and curve; None without known or without open images."""
    thresholds = np.linspace(0, 1, POINTS + 1)
    both, curve = rates(verdicts, thresholds), oscr_curve(verdicts)
    if both is None or curve is None:
        return None
    known, opened = verdicts.score[verdicts.known], verdicts.score[~verdicts.known]
    kept = np.unique(np.linspace(0, len(curve[0]) - 1, POINTS + 1).round().astype(np.int64))
    x, y = curve[0][kept] / len(opened), curve[1][kept] / len(known)
    return OpenSet(known, opened, thresholds, *both, harmonic(*both), x, y, _marked(run))


def _marked(run: Run) -> Mapping[str, float]:
    """The thresholds that the run's metrics were computed with."""
    names = {"h_oracle": "oracle", "h_fixed": "fixed"}
    values = {word: run.metrics.choices.get(name, {}).get("threshold") for name, word in names.items()}
    return {word: float(value) for word, value in values.items() if isinstance(value, int | float)}


def reliability_of(verdicts: Verdicts) -> Reliability | None:
    """Bins of confidence over images of known classes, as the metric ECE takes them."""
    score, correct = verdicts.score[verdicts.known], verdicts.correct[verdicts.known]
    ece = expected_calibration_error(score, correct)
    if ece is None:
        return None
    images, confident, right = calibration_bins(score, correct)
    count = np.where(images > 0, images, np.nan)
    return Reliability(images, confident / count, right / count, ece)


def features_of(run: Run) -> FeatureTable | None:
    """The features that the run kept, where they fit its task."""
    table = FeatureTable.load(run.directory.features_file)
    if table is None or not len(table.rows) or table.labels.max(initial=0) >= len(run.task.classes):
        return None
    return table


def cloud_of(run: Run, table: FeatureTable) -> tuple[Cloud, str]:
    """The first images of the table on a plane, with domain and class, and how they were laid out."""
    rank = np.empty(len(run.task.classes), dtype=np.int64)
    rank[head_to_tail(run.task.class_counts)] = np.arange(len(rank))
    places, way = flattened(table.features[:MAPPED])
    return Cloud(places, table.domains[:MAPPED], rank[table.labels[:MAPPED]]), way


def retrieved_of(run: Run, table: FeatureTable) -> list[Retrieved]:
    """A query of a head, a middle and a tail class, in the held-out domain where there is one, and its neighbours."""
    projected = table.views.get("projected")
    if projected is None or len(projected) != len(table.rows):
        return []
    shots = _shots(run, table)
    found = []
    for label in _three_classes(run, table):
        held_out = table.domains == (run.task.domains.index(run.task.held_out) if run.task.held_out else -1)
        candidates = np.flatnonzero(table.labels == label)
        query = int(candidates[np.argmax(held_out[candidates])])
        seen = tuple(d for d, there in zip(run.task.domains, run.task.seen_in_domain[:, label], strict=True) if there)
        around = tuple(shots(int(i)) for i in nearest(projected, query))
        found.append(Retrieved(shots(query), around, seen))
    return found


def _three_classes(run: Run, table: FeatureTable) -> list[int]:
    """The first, the middle and the last trained class from head to tail, of those that the table shows."""
    shown = set(table.labels.tolist())
    order = [int(c) for c in head_to_tail(run.task.class_counts) if c in shown and run.task.class_counts[c]]
    return [order[place] for place in sorted({0, len(order) // 2, len(order) - 1})] if order else []


def _shots(run: Run, table: FeatureTable) -> Callable[[int], Shot]:
    """Shots by place in a table; without pixels where the run's dataset is not where the run found it."""
    manifest = None
    with contextlib.suppress(LtdsError, OSError, LookupError, TypeError):
        manifest = Manifest.read(Path(run.config["data"]["root"]))
    if manifest and manifest.checksum != run.environment.get("data"):
        manifest = None  # row ids mean other images there

    def shot(place: int) -> Shot:
        image = thumbnail(manifest.root / manifest.paths[table.rows[place]]) if manifest else None
        return Shot(image, run.task.classes[table.labels[place]], run.task.domains[table.domains[place]])

    return shot


def thumbnail(file: Path) -> NDArray[np.uint8] | None:
    """(h,w,3) of at most 96 pixels; None where the file cannot be read."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            image.draft("RGB", (THUMBNAIL, THUMBNAIL))
            small = image.convert("RGB")
            small.thumbnail((THUMBNAIL, THUMBNAIL))
            return np.asarray(small, dtype=np.uint8)
    except (OSError, ValueError):
        return None
