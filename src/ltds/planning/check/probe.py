"""A quick probe of the shift between domains: a linear classifier on fixed features, one domain left out at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
TESTED = 0.3  # share of the source images on which the known domains are tested
RIDGE = 1.0  # regularisation, as a share of the mean variance of the features
FEWEST = 3  # images of a class in a domain, to compare the domains by


@dataclass(frozen=True)
class DomainProbe:
    """Accuracies (means over classes) on the known domains and on one that was left out, and the images behind."""

    domain: str
    known: float
    unseen: float
    images: int

    @property
    def drop(self) -> float:
        return self.known - self.unseen


def probe_domains(
    features: NDArray[np.float32], labels: Ids, domains: Ids, names: tuple[str, ...]
) -> list[DomainProbe]:
    """For each domain, a classifier trained on the others: how it does on them, and on that one.

    Both are measured on the classes that the domain shares with the others, so that only the domain differs.
    """
    results = []
    for domain, name in enumerate(names):
        unseen = domains == domain
        tested = numpy_generator(0, "check/split", domain).random(len(labels)) < TESTED
        train = ~unseen & ~tested
        shared = np.intersect1d(np.unique(labels[train]), np.unique(labels[unseen]))
        known_rows = ~unseen & tested & np.isin(labels, shared)
        unseen_rows = unseen & np.isin(labels, shared)
        if len(shared) < 2 or not known_rows.any():
            continue
        predict = _ridge(features[train].astype(np.float64), labels[train])
        known, new = (_macro(predict(features[r]), labels[r]) for r in (known_rows, unseen_rows))
        results.append(DomainProbe(name, known, new, int(unseen_rows.sum())))
    return results


def probe_distances(features: NDArray[np.float32], labels: Ids, domains: Ids, count: int) -> Array:
    """(D,D) how far two domains lie apart: between the means of a class in both, averaged over shared classes.

    In units of the distance between two classes of one domain: at 1, another domain changes an image as much as
    another class does. Squared distances are freed of the noise of small classes; NaN without a shared class.
    """
    means, noise = _class_means(features.astype(np.float64), labels, domains)
    table = np.full((count, count), np.nan)
    unit = _between_classes(means, noise)
    for a in range(count):
        table[a, a] = 0.0
        for b in range(a):
            both = [c for (d, c) in means if d == a and (b, c) in means]
            if both and unit > 0:
                squared = np.mean([_squared(means, noise, (a, c), (b, c)) for c in both])
                table[a, b] = table[b, a] = np.sqrt(max(0.0, float(squared)) / unit)
    return table


Means = dict[tuple[int, int], Array]
Noise = dict[tuple[int, int], float]


def _class_means(features: Array, labels: Ids, domains: Ids) -> tuple[Means, Noise]:
    means: Means = {}
    noise: Noise = {}
    for domain, label in {(int(d), int(c)) for d, c in zip(domains, labels, strict=True)}:
        rows = features[(domains == domain) & (labels == label)]
        if len(rows) >= FEWEST:
            means[domain, label] = rows.mean(axis=0)
            noise[domain, label] = float(rows.var(axis=0, ddof=1).sum()) / len(rows)
    return means, noise


def _squared(means: Means, noise: Noise, first: tuple[int, int], second: tuple[int, int]) -> float:
    """The squared distance between two means, less what chance alone would make of it."""
    return float(((means[first] - means[second]) ** 2).sum()) - noise[first] - noise[second]


def _between_classes(means: Means, noise: Noise) -> float:
    """The mean squared distance between two classes of the same domain, over all pairs of all domains."""
    total, pairs = 0.0, 0
    for domain in {d for d, _ in means}:
        keys = [key for key in means if key[0] == domain]
        stacked, count = np.stack([means[key] for key in keys]), len(keys)
        total += count * float((stacked**2).sum()) - float((stacked.sum(axis=0) ** 2).sum())
        total -= (count - 1) * sum(noise[key] for key in keys)
        pairs += count * (count - 1) // 2
    return max(0.0, total / pairs) if pairs else 0.0


def _ridge(features: Array, labels: Ids) -> Callable[[NDArray[np.float32]], Ids]:
    """A linear classifier by least squares, each class with the same weight; returns its prediction function."""
    classes, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    mean, std = features.mean(axis=0), features.std(axis=0) + 1e-6
    inputs = np.column_stack([(features - mean) / std, np.ones(len(features))])
    weights = 1.0 / counts[index]
    targets = np.eye(len(classes))[index]
    gram = (inputs * weights[:, None]).T @ inputs
    penalty = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    solution = np.linalg.solve(gram + penalty, (inputs * weights[:, None]).T @ targets)

    def predict(values: NDArray[np.float32]) -> Ids:
        scaled = np.column_stack([(values - mean) / std, np.ones(len(values))])
        chosen: Ids = classes[np.argmax(scaled @ solution, axis=1)]
        return chosen

    return predict


def _macro(predicted: Ids, labels: Ids) -> float:
    """The mean over classes of the share of right answers."""
    return float(np.mean([np.mean(predicted[labels == c] == c) for c in np.unique(labels)]))
