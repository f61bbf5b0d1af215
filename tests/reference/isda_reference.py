"""Slow twin of an ISDA step on a linear model f(x) = A x, h(v) = W v + b: Python loops, gradient by a complex step."""

from __future__ import annotations

import numpy as np


def covariance(rows, labels, c, diagonal):
    """Population covariance of the rows of class c, all at once: what any split into batches must lead to."""
    of_class = [row for row, y in zip(rows, labels, strict=True) if y == c]
    width = len(rows[0])
    sigma = np.zeros((width, width))
    if not of_class:
        return sigma
    mean = [sum(row[i] for row in of_class) / len(of_class) for i in range(width)]
    for i in range(width):
        for j in range(width):
            if i == j or not diagonal:
                sigma[i, j] = sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in of_class) / len(of_class)
    return sigma


def loss(A, W, b, x, y, shift, sigmas, strength):
    """Mean of -log softmax_y of z_c + shift_c + (lambda/2) (w_c - w_y)^T Sigma_y (w_c - w_y)."""
    total = 0.0
    for x_i, y_i, shift_i in zip(x, y, shift, strict=True):
        f = [sum(a * v for a, v in zip(row, x_i, strict=True)) for row in A]
        logits = []
        for c in range(len(W)):
            z = sum(w * v for w, v in zip(W[c], f, strict=True)) + b[c] + shift_i[c]
            d = [W[c][k] - W[y_i][k] for k in range(len(f))]
            quadratic = sum(d[i] * sigmas[y_i][i][j] * d[j] for i in range(len(f)) for j in range(len(f)))
            logits.append(z + strength / 2 * quadratic)
        total = total - logits[y_i] + np.log(sum(np.exp(z) for z in logits))
    return total / len(y)


def gradient(function, arrays, h=1e-30):
    """The gradient of function(*arrays) by each array, an entry at a time."""
    gradients = []
    for k, array in enumerate(arrays):
        by = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            moved = [np.asarray(a, dtype=complex) for a in arrays]
            moved[k] = moved[k].copy()
            moved[k][index] += 1j * h
            by[index] = np.imag(function(*moved)) / h
        gradients.append(by)
    return gradients
