"""Training images and accuracy of each class, as means over runs. NaN means no value."""

from __future__ import annotations

import numpy as np

from ltds.evaluation.arrays import FloatArray, IntArray
from ltds.reporting.dataset import Dataset


def class_accuracy(dataset: Dataset) -> tuple[FloatArray, FloatArray, list[int]]:
    """Training images (T,), accuracy (M,T) and the ids of the T classes that some run trained on.

    Both are means over the runs of a method that trained on the class: an open class has no meaningful accuracy. Each
    held-out domain counts once, however many seeds it has.
    """
    shape = (len(dataset.rows), len(dataset.classes))
    accuracy, images = np.full(shape, np.nan), np.full(shape, np.nan)
    class_ids = {name: c for c, name in enumerate(dataset.classes)}
    for m, runs in enumerate(dataset.rows.values()):
        values: dict[int, dict[str, list[tuple[float, float]]]] = {}
        for held_out, row in ((run.held_out, row) for run in runs for row in run.metrics.per_class):
            if row.train_images and row.accuracy is not None:
                of_class = values.setdefault(class_ids[row.name], {})
                of_class.setdefault(held_out, []).append((row.train_images, row.accuracy))
        for c, by_domain in values.items():
            images[m, c], accuracy[m, c] = np.mean([np.mean(pairs, axis=0) for pairs in by_domain.values()], axis=0)
    trained = np.flatnonzero(np.isfinite(accuracy).any(axis=0))
    return mean_known(images[:, trained]), accuracy[:, trained], trained.tolist()


def class_test_images(dataset: Dataset) -> IntArray | None:
    """(C,) test images of each class over all domains, the fewest of any run; None if no run recorded them."""
    counts = [
        run.test_images.sum(axis=0) for runs in dataset.rows.values() for run in runs if run.test_images is not None
    ]
    return np.min(counts, axis=0) if counts else None


def mean_known(values: FloatArray) -> FloatArray:
    """Mean over the first axis of the values that are not NaN; NaN where all are."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0).sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def head_to_tail(images: IntArray | FloatArray) -> IntArray:
    """(C,) class ids from most to fewest images; classes with equally many keep their order."""
    return np.argsort(-images, kind="stable")
