"""Slow twins of Remix and CuMix: float64, Python loops, from their papers; no code shared with src."""

from __future__ import annotations

import math


def log_softmax(logits):
    top = max(logits)
    total = top + math.log(sum(math.exp(z - top) for z in logits))
    return [z - total for z in logits]


def soft_cross_entropy(logits, label):
    """-sum_c label_c log softmax(z)_c, the label a vector that sums to 1."""
    return -sum(p * log_p for p, log_p in zip(label, log_softmax(logits), strict=True) if p)


def mixed_one_hot(classes, shares):
    """sum_m shares_m onehot(y_m), from {y_m: share} pairs that may name a class twice."""
    label = [0.0] * classes
    for y, share in shares:
        label[y] += share
    return label


def calibrated(logits, y, n):
    """-log n_y exp(z_y) / sum_c n_c exp(z_c)."""
    return -math.log(n[y] * math.exp(logits[y]) / sum(k * math.exp(z) for k, z in zip(n, logits, strict=True)))


def remix_label(share, n_i, n_j, kappa, tau):
    """lambda_y of one pair."""
    if n_i / n_j >= kappa and share < tau:
        return 0.0
    if n_i / n_j <= 1 / kappa and 1 - share < tau:
        return 1.0
    return share


def remix_mean(logits, labels, partners, share, sizes, kappa, tau, weights=None):
    """The mean over samples of lambda_y CE_n(z, y_i) + (1 - lambda_y) CE_n(z, y_j).

    `sizes`: images of each class; `weights`: the n of each sample in CE_n, all 1 for cross-entropy.
    """
    total = 0.0
    for i, z in enumerate(logits):
        j = partners[i]
        kept = remix_label(share, sizes[labels[i]], sizes[labels[j]], kappa, tau)
        n = weights or [[1.0] * len(z)] * len(logits)
        total += kept * calibrated(z, labels[i], n[i]) + (1 - kept) * calibrated(z, labels[j], n[j])
    return total / len(logits)


def remix_batch_mean_shortcut(logits, labels, partners, share, sizes, kappa, tau):
    """What one public implementation computes: lambda_y times a cross-entropy that was averaged before. Wrong."""
    n, ones = len(logits), [1.0] * len(logits[0])
    kept = [remix_label(share, sizes[labels[i]], sizes[labels[partners[i]]], kappa, tau) for i in range(n)]
    first = sum(calibrated(logits[i], labels[i], ones) for i in range(n)) / n
    second = sum(calibrated(logits[i], labels[partners[i]], ones) for i in range(n)) / n
    return sum(w * first + (1 - w) * second for w in kept) / n


def mix(x, partners, ratios):
    """r a + (1 - r) a_j, rows of x."""
    return [
        [r * a + (1 - r) * b for a, b in zip(x[i], x[partners[i]], strict=True)]
        for i, r in zip(range(len(x)), ratios, strict=True)
    ]


def cumix_term(logits, labels, partners, ratios, domains):
    """The mean over domains of the mean over its samples of softCE(z, r onehot(y_i) + (1 - r) onehot(y_j))."""
    means = []
    for d in sorted(set(domains)):
        losses = []
        for i, z in enumerate(logits):
            if domains[i] == d:
                shares = [(labels[i], ratios[i]), (labels[partners[i]], 1 - ratios[i])]
                losses.append(soft_cross_entropy(z, mixed_one_hot(len(z), shares)))
        means.append(sum(losses) / len(losses))
    return sum(means) / len(means)


def cumix_beta(epoch, beta_max, n):
    return min(beta_max, max(beta_max * epoch / n, 0.1))


def cumix_same(epoch, n):
    return min(1.0, max((2 * n - epoch) / n, 0.0))
