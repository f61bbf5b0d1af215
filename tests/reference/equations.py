"""Slow twins of the paper's equations: float64, Python loops, transcribed from the LaTeX; no code shared with src.

Scalars may be complex, so that derivatives can be taken by a complex step (f(x + ih).imag / h, exact to rounding).
Matrices are nested sequences. `None` for counts means the equation as printed, without them.
"""

from __future__ import annotations

import math

import numpy as np


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(x):
    """u(x) = x / max(|x|, 1e-12)."""
    length = np.sqrt(dot(x, x))
    return [value / (length if length.real > 1e-12 else 1e-12) for value in x]


def dc(logits, y, n):
    """Eq. (2): -log n_y exp(z_y) / sum_c n_c exp(z_c)."""
    denominator = sum(n[c] * np.exp(logits[c]) for c in range(len(logits)) if n[c] > 0)
    return -np.log(n[y] * np.exp(logits[y]) / denominator)


def z2s(projected, y, table, alpha, tau, n=None):
    """Eq. (3), with the counts of Eq. (2) in front of every exponential if given."""
    n = [1.0] * len(table) if n is None else n
    p = unit(projected)
    positive = n[y] * np.exp((dot(p, table[y]) - alpha) / tau)
    negatives = sum(n[j] * np.exp(dot(p, table[j]) / tau) for j in range(len(table)) if j != y and n[j] > 0)
    return -np.log(positive / (positive + negatives))


def s2s_of_class(m, n, c, alpha, tau, cross=1.0, intra=1.0):
    """The bracket of Eq. (4), m -> n, for class c."""
    positive = np.exp((dot(m[c], n[c]) - alpha) / tau)
    others = [j for j in range(len(m)) if j != c]
    across = sum(np.exp(dot(m[c], n[j]) / tau) for j in others)
    within = sum(np.exp(dot(m[c], m[j]) / tau) for j in others)
    return -np.log(positive / (positive + cross * across + intra * within))


def s2s(m, n, alpha, tau, cross=1.0, intra=1.0):
    """Eq. (4): the expectation over all classes."""
    return sum(s2s_of_class(m, n, c, alpha, tau, cross, intra) for c in range(len(m))) / len(m)


def align(tables, s, alpha, tau, released=False, to_semantics=True):
    """L_S2S: expectation over ordered pairs of different domains, plus expectation over domains towards s."""
    T = len(tables)
    pairs = [(m, n) for m in range(T) for n in range(T) if m != n]
    total = 0.0
    for m, n in pairs:
        slip = released and m < n  # the released code takes the cross negatives twice in this direction
        weights = (2.0, 0.0) if slip else (1.0, 1.0)
        total = total + s2s(tables[m], tables[n], alpha, tau, *weights) / len(pairs)
    if to_semantics:
        total = total + sum(s2s(t, s, alpha, tau) for t in tables) / T
    return total


def s2z(visual, W, b, cycled, s, alpha, tau, weights=(1.0, 1.0), intra=1.0):
    """Eq. (5) of one domain: visual v^ (C,D), cycled e(v^) (C,S), before normalising."""
    C = len(visual)
    classification = 0.0
    for i in range(C):
        logits = [dot(W[c], visual[i]) + b[c] for c in range(len(W))]
        classification = classification - np.log(np.exp(logits[i]) / sum(np.exp(z) for z in logits)) / C
    return weights[0] * classification + weights[1] * s2s([unit(row) for row in cycled], s, alpha, tau, 1.0, intra)


def prototypes(old, present, features, labels, momentum=0.5, first_visit=True, epsilon=0.0):
    """Supplement, "Online Estimation": new table (C,D) and mask (C,) of one domain after a batch."""
    new, mask = [list(row) for row in old], list(present)
    for c in range(len(old)):
        of_class = [f for f, y in zip(features, labels, strict=True) if y == c]
        if not of_class:
            continue
        mean = [sum(f[a] for f in of_class) / (len(of_class) + epsilon) for a in range(len(of_class[0]))]
        blend = [(1 - momentum) * x + momentum * v for x, v in zip(mean, old[c], strict=True)]
        new[c] = mean if first_visit and not present[c] else blend
        mask[c] = True
    return new, mask


def complete(values, present, s, e):
    """s^ = e(v) . M + s . (1 - M), unit rows; e maps a list of rows; fewer than two rows cannot pass its BatchNorm."""
    valid = [c for c in range(len(s)) if present[c]]
    table = [list(row) for row in s]
    if len(valid) > 1:
        for c, row in zip(valid, e([values[c] for c in valid]), strict=True):
            table[c] = unit(row)
    return table


def project(rows, weight, bias, gain, shift, activation, eps=1e-5):
    """Linear, BatchNorm in training mode (population variance), activation: rows (N,in) -> (N,out)."""
    linear = [[dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in rows]
    out = [[0.0] * len(weight) for _ in rows]
    for a in range(len(weight)):
        column = [row[a] for row in linear]
        mean = sum(column) / len(column)
        variance = sum((x - mean) ** 2 for x in column) / len(column)
        for i, x in enumerate(column):
            out[i][a] = activation(gain[a] * (x - mean) / np.sqrt(variance + eps) + shift[a])
    return out


def covariance(samples):
    """Mean and population covariance of rows, and how many there are: what the online formula must arrive at."""
    D, k = len(samples[0]), len(samples)
    mean = [sum(x[a] for x in samples) / k for a in range(D)]
    sigma = [[sum((x[a] - mean[a]) * (x[b] - mean[b]) for x in samples) / k for b in range(D)] for a in range(D)]
    return mean, sigma, k


def online_covariance(count, mean, sigma, features, labels):
    """ISDA's update of all classes after a batch, by its formula: count (C,), mean (C,D), sigma (C,D,D)."""
    count, mean, sigma = list(count), [list(r) for r in mean], [[list(r) for r in m] for m in sigma]
    D = len(mean[0])
    for c in range(len(count)):
        of_class = [f for f, y in zip(features, labels, strict=True) if y == c]
        if not of_class:
            continue
        m, B, k = covariance(of_class)
        w = k / (k + count[c])
        for a in range(D):
            for b in range(D):
                between = (mean[c][a] - m[a]) * (mean[c][b] - m[b])
                sigma[c][a][b] = (1 - w) * sigma[c][a][b] + w * B[a][b] + w * (1 - w) * between
        mean[c] = [(1 - w) * old + w * new for old, new in zip(mean[c], m, strict=True)]
        count[c] += k
    return count, mean, sigma


def top_k(s, k):
    """Eq. (7), first line: for each class the k classes of highest cosine, itself first, ties by index."""
    rows = [unit(row) for row in s]
    neighbours = []
    for c in range(len(s)):
        order = sorted(range(len(s)), key=lambda i, c=c: (i != c, -round(float(dot(rows[c], rows[i])), 12), i))
        neighbours.append(order[:k])
    return neighbours


def sigma_prime(sigma, neighbours, n):
    """Eq. (7), second line: sum n_k Sigma_k / sum n_k; Sigma_c where all n_k are 0; n None: plain mean."""
    result = []
    for c, near in enumerate(neighbours):
        weights = [1.0 if n is None else n[k] for k in near]
        if sum(weights) == 0:
            near, weights = [c], [1.0]
        result.append(sum(w * np.asarray(sigma[k]) for w, k in zip(weights, near, strict=True)) / sum(weights))
    return result


def quadratic(w_c, w_y, sigma):
    """(w_c - w_y)^T Sigma (w_c - w_y), Sigma a matrix or a diagonal."""
    difference = [a - b for a, b in zip(w_c, w_y, strict=True)]
    D = len(difference)
    if np.ndim(sigma) == 1:
        return sum(difference[a] * sigma[a] * difference[a] for a in range(D))
    return sum(difference[a] * sigma[a][b] * difference[b] for a in range(D) for b in range(D))


def aug_logits(f, y, W, b, sigma, strength, W_true=None):
    """The exponents of Eq. (8) with w_c where w_{y_i} is printed by mistake, and with the bias."""
    W_true = W if W_true is None else W_true
    return [dot(W_true[c], f) + b[c] + strength / 2 * quadratic(W[c], W_true[y], sigma) for c in range(len(W))]


def aug(f, y, W, b, sigma, strength, n=None, W_true=None):
    """Eq. (8), with the counts of Eq. (2) if given."""
    return dc(aug_logits(f, y, W, b, sigma, strength, W_true), y, [1.0] * len(W) if n is None else n)


def aug_as_printed(f, y, W, sigma, strength):
    """Eq. (8) to the letter, with w_{y_i}^T f in the denominator: f cancels."""
    true = dot(W[y], f)
    return -np.log(np.exp(true) / sum(np.exp(true + strength / 2 * quadratic(w, W[y], sigma)) for w in W))


def expected_cross_entropy(f, y, W, b, sigma, strength, nodes=40):
    """Left side of Eq. (6): E[CE] over N(f, strength Sigma) by Gauss-Hermite quadrature, for two features."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    root = np.linalg.cholesky(strength * np.asarray(sigma) + 1e-300 * np.eye(2))
    total = 0.0
    for p, wp in zip(points, weights, strict=True):
        for q, wq in zip(points, weights, strict=True):
            x = np.asarray(f) + root @ np.array([p, q])
            logits = [float(dot(W[c], x)) + b[c] for c in range(len(W))]
            total += wp * wq * (math.log(sum(math.exp(z) for z in logits)) - logits[y])
    return total / (2 * math.pi)
