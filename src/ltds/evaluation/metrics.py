"""Accuracies and calibration, as pure functions on arrays. Without images a value is None, never 0 or NaN.

Letters: N images, C classes, G domains (all domains, including the held-out one).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ltds.evaluation.arrays import BoolArray, FloatArray, IntArray

FEW_IMAGES = 30  # a share of fewer images says little: chance alone moves it by up to 18 points to either side (95 %)
FEW_OPEN_CLASSES = 5  # fewer say little of other new classes: how often each is noticed differs by far
ECE_BINS = 15


def pair_counts(
    correct: BoolArray, labels: IntArray, domains: IntArray, shape: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """(G,C) correctly classified images and (G,C) all images of each (domain, class) pair.

    Every accuracy is computed from these two. correct, labels, domains (N,); shape (G,C).
    """
    pair = domains * shape[1] + labels
    size = shape[0] * shape[1]
    images = np.bincount(pair, minlength=size).reshape(shape)
    hits = np.bincount(pair[correct], minlength=size).reshape(shape)
    return hits, images


def accuracy(hits: IntArray, images: IntArray) -> float | None:
    """Accuracy over the images of all given pairs, pooled; None without images. hits, images: any equal shape."""
    total = int(images.sum())
    return int(hits.sum()) / total if total else None


def accuracies(hits: IntArray, images: IntArray) -> list[float | None]:
    """The accuracy of each entry, None where it has no images. hits, images (M,)."""
    return [int(hit) / int(count) if count else None for hit, count in zip(hits, images, strict=True)]


def macro_accuracy(hits: IntArray, images: IntArray) -> float | None:
    """Mean over classes (those with images) of the accuracy on that class, its images pooled over domains.

    hits, images (G,C).
    """
    return mean(accuracies(hits.sum(axis=0), images.sum(axis=0)))


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are not None; None if all are."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def harmonic(a: FloatArray, b: FloatArray) -> FloatArray:
    """(T,) 2ab / (a + b), and 0 where a = b = 0. a, b (T,)."""
    total = a + b
    return np.divide(2 * a * b, total, out=np.zeros_like(total), where=total > 0)


def expected_calibration_error(confidence: FloatArray, correct: BoolArray, bins: int = ECE_BINS) -> float | None:
    """Mean over images of |accuracy - mean confidence| of the image's bin; None without images.

    confidence, correct (N,).
    """
    if not len(confidence):
        return None
    _, confident, right = calibration_bins(confidence, correct, bins)
    return float(np.abs(right - confident).sum() / len(confidence))


def calibration_bins(
    confidence: FloatArray, correct: BoolArray, bins: int = ECE_BINS
) -> tuple[IntArray, FloatArray, IntArray]:
    """(bins,) images, sum of their confidence, and how many of them are correct. confidence, correct (N,).

    Bins are equally wide on [0,1] and closed on the right: (i/bins, (i+1)/bins].
    """
    inner_edges = np.linspace(0, 1, bins + 1)[1:-1]
    bin_of = np.searchsorted(inner_edges, confidence, side="left")
    confident: FloatArray = np.bincount(bin_of, weights=confidence, minlength=bins)  # type: ignore[assignment]
    return np.bincount(bin_of, minlength=bins), confident, np.bincount(bin_of[correct], minlength=bins)
