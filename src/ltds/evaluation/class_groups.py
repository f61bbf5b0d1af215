"""Accuracies of groups of classes: many, medium and few training images; seen and unseen domain-class pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltds.core.task import Task
from ltds.evaluation import metrics
from ltds.evaluation.arrays import BoolArray, IntArray

SHOTS = ("many", "medium", "few")
MANY, FEW = 100, 20  # training images of a class over all sources: many are more than 100, few are fewer than 20
SHOT_MEANING = {"many": f"more than {MANY}", "medium": f"{FEW} to {MANY}", "few": f"fewer than {FEW}"}


def shot_groups(task: Task) -> list[str]:
    """(C,) "many", "medium" or "few" by the training images of each class, or "open" (none)."""
    counts = task.class_counts
    groups = np.select([counts > MANY, counts >= FEW, counts > 0], list(SHOTS), "open")
    return [str(group) for group in groups]


def known_mask(task: Task) -> BoolArray:
    """(C,) which classes have training images in some source domain."""
    mask: BoolArray = task.class_counts > 0
    return mask


def group_accuracies(hits: IntArray, images: IntArray, seen: BoolArray, task: Task) -> dict[str, float | None]:
    """Accuracies on the known classes of some domains. hits, images, seen (domains,C)."""
    known = known_mask(task)
    hits, images = hits * known, images * known
    shots = np.array(shot_groups(task))
    return {
        "accuracy": metrics.accuracy(hits, images),
        "macro_accuracy": metrics.macro_accuracy(hits, images),
        **{s: metrics.macro_accuracy(hits[:, shots == s], images[:, shots == s]) for s in SHOTS},
        "seen_pairs": metrics.accuracy(hits[seen], images[seen]),
        "unseen_pairs": metrics.accuracy(hits[~seen], images[~seen]),
    }


def answer_shares(unknown: IntArray, named: IntArray, judged: IntArray, task: Task) -> dict[str, float | None]:
    """What a model answers as it is used: how often "unknown", and how often the right class, in some domains.

    unknown, named, judged (domains,C): images called unknown, given their own class, and all to which the rule applies.
    """
    known, shots = known_mask(task), np.array(shot_groups(task))
    of_known = {"known_called_unknown": unknown * known, "named_right": named * known}
    return {
        **{name: metrics.accuracy(count, judged * known) for name, count in of_known.items()},
        "open_called_unknown": metrics.accuracy(unknown[:, ~known], judged[:, ~known]),
        **{
            f"{name}_{s}": metrics.macro_accuracy(count[:, shots == s], judged[:, shots == s])
            for name, count in of_known.items()
            for s in SHOTS
        },
    }


def class_rows(
    hits: IntArray, images: IntArray, unknown: IntArray, judged: IntArray, task: Task
) -> list[dict[str, Any]]:
    """The "per_class" of metrics.json. hits, images, unknown, judged (C,), the last two as in `answer_shares`."""
    shares = (metrics.accuracies(hits, images), images.tolist(), metrics.accuracies(unknown, judged))
    columns = (task.classes, task.class_counts.tolist(), shot_groups(task), *shares)
    names = ("class", "train_images", "shot", "accuracy", "images", "called_unknown")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
