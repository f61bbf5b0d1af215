"""cRT's siblings, image by image in plain Python floats. Shares no code with the package."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def first_largest(values: Vector) -> int:
    best = 0
    for index, value in enumerate(values):
        if value > values[best]:
            best = index
    return best


def tau_logits(feature: Vector, weight: Sequence[Vector], tau: float) -> list[float]:
    """w_c.f / |w_c|^tau, no bias."""
    return [dot(row, feature) / math.sqrt(dot(row, row)) ** tau for row in weight]


def tau_scores(
    features: Sequence[Vector],
    labels: Sequence[int],
    domains: Sequence[int],
    weight: Sequence[Vector],
    known: Sequence[bool],
) -> list[float]:
    """For tau = 0, .1, .. 2: mean over domains of the accuracy on images of known classes."""
    scores = []
    for step in range(21):
        shares = []
        for domain in sorted(set(domains)):
            verdicts = [
                first_largest(tau_logits(feature, weight, step / 10)) == label
                for feature, label, origin in zip(features, labels, domains, strict=True)
                if origin == domain and known[label]
            ]
            if verdicts:
                shares.append(sum(verdicts) / len(verdicts))
        scores.append(sum(shares) / len(shares))
    return scores


def cross_entropy(logits: Sequence[Vector], labels: Sequence[int]) -> float:
    """Mean over images of -log softmax at the label."""
    losses = [math.log(sum(math.exp(z) for z in row)) - row[label] for row, label in zip(logits, labels, strict=True)]
    return sum(losses) / len(losses)
