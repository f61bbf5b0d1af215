"""The mistakes of a model on test images: which classes it takes for which, and its most confident errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ltds.core.task import Task
from ltds.evaluation.arrays import IntArray
from ltds.evaluation.table import PredictionTable

SHOWN = 18  # mistakes of a gallery
CONFUSIONS = 10  # pairs of classes that a page names
SAME = 2  # mistakes with the same true and predicted class: more of the same teach nothing


@dataclass(frozen=True)
class Mistake:
    """A wrongly predicted image: row id of the manifest, and ids of true class, predicted class and domain."""

    row: int
    truth: int
    predicted: int
    domain: int
    confidence: float


@dataclass(frozen=True)
class Confusion:
    """How many of the `images` of a class were predicted as another class."""

    truth: int
    predicted: int
    count: int
    images: int


def worst_mistakes(table: PredictionTable, task: Task) -> list[Mistake]:
    """The most confident errors in the held-out domain, or in all domains if none is held out; most confident first.

    A class that the model was not trained on counts as well: any other answer than that class is an error.
    """
    chosen = judged_rows(table, task)
    predicted = table.logits[chosen].argmax(axis=1)
    wrong = chosen[predicted != table.labels[chosen]]
    logits = table.logits[wrong].astype(np.float64)
    best = logits.argmax(axis=1)
    confidence = 1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1) if len(wrong) else np.zeros(0)
    taken: Counter[tuple[int, int]] = Counter()
    mistakes: list[Mistake] = []
    for i in np.argsort(-confidence, kind="stable"):
        image, pair = wrong[i], (int(table.labels[wrong[i]]), int(best[i]))
        if taken[pair] < SAME:
            taken[pair] += 1
            mistakes.append(Mistake(int(table.rows[image]), *pair, int(table.domains[image]), float(confidence[i])))
        if len(mistakes) == SHOWN:
            break
    return mistakes


def confusions(table: PredictionTable, task: Task) -> list[Confusion]:
    """The pairs of classes that are confused most often, on the same images as `worst_mistakes`; known classes only."""
    chosen = judged_rows(table, task)
    known = ~np.isin(table.labels[chosen], task.open_classes)
    labels = table.labels[chosen][known]
    predicted = table.logits[chosen][known].argmax(axis=1)
    pairs = Counter(zip(labels[labels != predicted].tolist(), predicted[labels != predicted].tolist(), strict=True))
    images = np.bincount(labels, minlength=len(task.classes))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:CONFUSIONS]
    return [Confusion(truth, other, number, int(images[truth])) for (truth, other), number in ordered]


def judged_rows(table: PredictionTable, task: Task) -> IntArray:
    """(M,) positions of the images of the held-out domain, or of all images if no domain is held out."""
    if task.held_out is None:
        return np.arange(len(table.labels))
    return np.flatnonzero(table.domains == task.domains.index(task.held_out))
