"""Slow twin of MLDG on a linear model f(x) = A x, h(v) = W v + b: loops, complex-step and central differences."""

from __future__ import annotations

import numpy as np
from derivative import complex_gradient

PIXELS, D, C = 3, 2, 3
SHAPES = {"backbone.weight": (D, PIXELS), "classifier.weight": (C, D), "classifier.bias": (C,)}


def unflatten(theta):
    parameters, start = [], 0
    for shape in SHAPES.values():
        size = int(np.prod(shape))
        parameters.append(np.asarray(theta[start : start + size]).reshape(shape))
        start += size
    return parameters


def cross_entropy(theta, x, y):
    """The mean over the samples of one domain."""
    A, W, b = unflatten(theta)
    total = 0.0
    for x_i, y_i in zip(x, y, strict=True):
        f = [sum(a * v for a, v in zip(row, x_i, strict=True)) for row in A]
        z = [sum(w * v for w, v in zip(row, f, strict=True)) + b_c for row, b_c in zip(W, b, strict=True)]
        total = total - z[y_i] + np.log(sum(np.exp(z_c) for z_c in z))
    return total / len(y)


def meta_train(theta, batches, held, mean):
    """L_tr over the domains that are not held out: a sum, as in the original, or a mean."""
    total = sum(cross_entropy(theta, x, y) for d, (x, y) in enumerate(batches) if d != held)
    return total / (len(batches) - 1) if mean else total


def total(theta, batches, held, mean, a, b):
    """L_tr(theta) + b L_te(theta - a grad L_tr(theta))."""
    fast = theta - a * complex_gradient(lambda t: meta_train(t, batches, held, mean), theta)
    return meta_train(theta, batches, held, mean) + b * cross_entropy(fast, *batches[held])


def derivative(theta, direction, *step, h=1e-5):
    """Of the total along a direction, by a central difference."""
    return (total(theta + h * direction, *step) - total(theta - h * direction, *step)) / (2 * h)
