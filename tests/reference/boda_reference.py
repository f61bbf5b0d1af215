"""Slow twins of BoDA in Python loops: its two alignment losses, its centroids, and a whole step of a linear model.

Written from Yang et al., ECCV 2022 (Eq. 4 and Appendix); numbers may be complex, so that gradients are exact
(`derivative.complex_gradient`).
"""

from __future__ import annotations

import numpy as np


def distance(a, b):
    return np.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def alignment(rows, labels, domains, centroids, counts, nu, temperature):
    """centroids: {(domain, class): vector}; counts[domain][class]: training images."""
    total, positives = 0.0, 0
    for z, c, d in zip(rows, labels, domains, strict=True):
        own = counts[d][c]
        logits = {
            (e, k): -distance(mu, z) / own * (counts[e][k] / own) ** nu / temperature
            for (e, k), mu in centroids.items()
            if (e, k) != (d, c)
        }
        normalizer = np.log(sum(np.exp(value) for value in logits.values()))
        for (_, k), value in logits.items():
            if k == c:
                total, positives = total + value - normalizer, positives + 1
    return -total / positives if positives else 0.0


def moments(domains):
    """domains: for each domain its rows."""
    total, pairs = 0.0, 0
    for a in range(len(domains)):
        for b in range(a):
            one, other = (described(rows) for rows in (domains[a], domains[b]))
            width = len(one[0])
            total += sum((one[0][i] - other[0][i]) ** 2 for i in range(width)) / width
            if one[1] is not None and other[1] is not None:
                cells = [(i, j) for i in range(width) for j in range(width)]
                total += sum((one[1][i][j] - other[1][i][j]) ** 2 for i, j in cells) / width**2
            pairs += 1
    return total / pairs


def described(rows):
    """The mean, and the covariance with the divisor n - 1, None for a single row."""
    n, width = len(rows), len(rows[0])
    mean = [sum(row[i] for row in rows) / n for i in range(width)]
    if n == 1:
        return mean, None
    products = [
        [sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) / (n - 1) for j in range(width)]
        for i in range(width)
    ]
    return mean, products


def centroids(rows, labels, domains):
    sums, images = {}, {}
    for z, c, d in zip(rows, labels, domains, strict=True):
        sums[d, c] = [s + x for s, x in zip(sums.get((d, c), [0.0] * len(z)), z, strict=True)]
        images[d, c] = images.get((d, c), 0) + 1
    return {pair: [s / images[pair] for s in vector] for pair, vector in sums.items()}


def cross_entropy(logits, label):
    return np.log(sum(np.exp(z) for z in logits)) - logits[label]


def linear(A, x):
    return [sum(a * p for a, p in zip(row, x, strict=True)) for row in A]


def step(A, W, b, images, labels, domains, means, counts, *, weights, nu, temperature):
    """The total of f(x) = A x, h(v) = W v + b: the mean over domains of cross-entropy, and the weighted other two."""
    rows = [linear(A, x) for x in images]
    by_domain = [[i for i, d in enumerate(domains) if d == domain] for domain in sorted(set(domains))]
    classification = sum(
        sum(cross_entropy([z + shift for z, shift in zip(linear(W, rows[i]), b, strict=True)], labels[i]) for i in part)
        / len(part)
        for part in by_domain
    ) / len(by_domain)
    return (
        classification
        + weights["moments"] * moments([[rows[i] for i in part] for part in by_domain])
        + weights["alignment"] * alignment(rows, labels, domains, means, counts, nu, temperature)
    )
