"""From runs to the arrays that figures draw. NaN is no value."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ltds.reporting.dataset import Dataset
from ltds.reporting.figures.training import Curve
from ltds.reporting.run import Run

Floats = NDArray[np.float64]
POINTS = 120  # a curve with more points than this looks the same and weighs more


def class_frequency(dataset: Dataset) -> tuple[Floats, Floats, list[int]]:
    """images (T,), accuracy (M,T) and the ids of the T classes that some run trained on.

    Both are means over a method's runs that trained on the class: where it is open, its accuracy means nothing.
    """
    shape = (len(dataset.rows), len(dataset.classes))
    accuracy, images = np.full(shape, np.nan), np.full(shape, np.nan)
    place = {name: c for c, name in enumerate(dataset.classes)}
    for m, runs in enumerate(dataset.rows.values()):
        found: dict[int, list[tuple[float, float]]] = {}
        for row in (row for run in runs for row in run.metrics.per_class):
            if row.train_images and row.accuracy is not None:
                found.setdefault(place[row.name], []).append((row.train_images, row.accuracy))
        for c, values in found.items():
            images[m, c], accuracy[m, c] = np.mean(values, axis=0)
    trained = np.flatnonzero(np.isfinite(accuracy).any(axis=0))
    return mean_known(images[:, trained]), accuracy[:, trained], trained.tolist()


def pair_accuracy(runs: Iterable[Run]) -> Floats | None:
    """(all domains, C): mean over these runs of the accuracy of each pair; None where no run has it."""
    found = [run.metrics.pairs.accuracy for run in runs if run.metrics.pairs]
    return mean_known(np.array(found, dtype=np.float64)) if found else None


def loss_terms(runs: Iterable[Run]) -> dict[str, Curve]:
    """Term -> (steps, mean over runs and neighbouring steps); a lone term that is the loss itself is shown once."""
    points: dict[str, list[tuple[float, float]]] = {}
    for line in (line for run in runs for line in run.journal if line.get("kind") == "step"):
        terms = line.get("terms") or {}
        shown = terms if len(terms) == 1 else {"total": line.get("loss"), **terms}
        for name, value in shown.items():
            if isinstance(value, int | float) and isinstance(line.get("step"), int):
                points.setdefault(str(name), []).append((line["step"], value))
    return {name: thinned(*np.array(pairs, dtype=np.float64).T) for name, pairs in points.items()}


def validation_curves(runs: Iterable[Run]) -> list[Curve]:
    """(steps, accuracy as a share) of each run that was validated."""
    curves = []
    for run in runs:
        lines = [line for line in run.journal if line.get("kind") == "validation" and line.get("accuracy") is not None]
        if lines:
            steps = np.array([line["step"] for line in lines], dtype=np.float64)
            curves.append(thinned(steps, np.array([line["accuracy"] for line in lines], dtype=np.float64)))
    return curves


def thinned(steps: Floats, values: Floats, points: int = POINTS) -> Curve:
    """(P,), (P,) with P at most `points`: means over equally many distinct steps each."""
    distinct, index = np.unique(steps, return_inverse=True)
    size = -(-len(distinct) // points)
    bins = index // size
    count = np.bincount(bins)
    return np.bincount(bins, weights=steps) / count, np.bincount(bins, weights=values) / count


def mean_known(values: Floats) -> Floats:
    """Mean over the first axis of what is not NaN; NaN where all is."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0).sum(axis=0)
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def head_to_tail(images: NDArray[np.int64] | Floats) -> NDArray[np.int64]:
    """(C,) class ids from most to fewest images; equal ones keep their order."""
    return np.argsort(-images, kind="stable")
