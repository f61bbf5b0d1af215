"""Slow twins of MASF in Python loops: its two losses, and a whole step on a tiny linear model without autograd.

The model: f(x) = A x, h(v) = W v + b, metric net m(v) = leaky(Q leaky(P v + p) + q). Parameters are one flat vector in
the order of `SHAPES`; gradients are taken by a complex step (exact), so that comparisons look at real parts.
"""

from __future__ import annotations

import numpy as np
from derivative import complex_gradient, named

PIXELS, D, C, HIDDEN, E = 3, 3, 4, 5, 2
SHAPES = {
    "backbone.weight": (D, PIXELS),
    "classifier.weight": (C, D),
    "classifier.bias": (C,),
    "metric.0.weight": (HIDDEN, D),
    "metric.0.bias": (HIDDEN,),
    "metric.2.weight": (E, HIDDEN),
    "metric.2.bias": (E,),
}


def unflatten(theta):
    return named(theta, SHAPES)


def softmax(z):
    powers = [np.exp(z_c) for z_c in z]
    return [power / sum(powers) for power in powers]


def global_loss(logits_a, y_a, logits_b, y_b, temperature):
    """Half the symmetric KL of the classes in both domains, summed, divided by the number of ALL classes."""
    classes, total = len(logits_a[0]), 0.0
    for c in range(classes):
        rows_a = [z for z, y in zip(logits_a, y_a, strict=True) if y == c]
        rows_b = [z for z, y in zip(logits_b, y_b, strict=True) if y == c]
        if not rows_a or not rows_b:
            continue
        p = softmax([sum(z[k] for z in rows_a) / len(rows_a) / temperature for k in range(classes)])
        q = softmax([sum(z[k] for z in rows_b) / len(rows_b) / temperature for k in range(classes)])
        there = sum(p[k] * np.log(p[k] / q[k]) for k in range(classes))
        back = sum(q[k] * np.log(q[k] / p[k]) for k in range(classes))
        total = total + (there + back) / 2
    return total / classes


def local_loss(rows, labels, margin):
    """Every anchor and positive with the nearest negative beyond the positive, else with the farthest negative."""
    total, pairs = 0.0, 0
    for a in range(len(rows)):
        negatives = [squared(rows[a], rows[n]) for n in range(len(rows)) if labels[n] != labels[a]]
        if not negatives:
            continue
        for p in range(len(rows)):
            if p == a or labels[p] != labels[a]:
                continue
            positive = squared(rows[a], rows[p])
            beyond = [d for d in negatives if d.real > positive.real]
            chosen = min(beyond, key=lambda d: d.real) if beyond else max(negatives, key=lambda d: d.real)
            hinge = margin + positive - chosen
            total = total + (hinge if hinge.real > 0 else 0.0)
            pairs += 1
    return total / pairs if pairs else 0.0


def squared(x, y):
    return sum((x_i - y_i) ** 2 for x_i, y_i in zip(x, y, strict=True))


def affine(rows, weight, bias=None):
    return [
        [
            sum(w_i * x_i for w_i, x_i in zip(w, x, strict=True)) + (0 if bias is None else bias[j])
            for j, w in enumerate(weight)
        ]
        for x in rows
    ]


def leaky(rows):
    return [[x if x.real > 0 else 0.2 * x for x in row] for row in rows]


def task_loss(theta, case):
    """Mean cross-entropy over the samples of every domain but the one held out."""
    p, total, count = unflatten(theta), 0.0, 0
    for domain, (x, y) in enumerate(case["batches"]):
        if domain == case["held"]:
            continue
        for z, y_i in zip(
            affine(affine(x, p["backbone.weight"]), p["classifier.weight"], p["classifier.bias"]), y, strict=True
        ):
            total = total - np.log(softmax(z)[y_i])
            count += 1
    return total / count


def meta_losses(theta, case):
    """The global loss, averaged over pairs with the domain held out, and the local loss on all domains."""
    p = unflatten(theta)
    features = [affine(x, p["backbone.weight"]) for x, _ in case["batches"]]
    logits = [affine(f, p["classifier.weight"], p["classifier.bias"]) for f in features]
    labels = [y for _, y in case["batches"]]
    held = case["held"]
    others = [d for d in range(len(labels)) if d != held]
    pairs = [global_loss(logits[held], labels[held], logits[d], labels[d], case["temperature"]) for d in others]
    hidden = leaky(affine([row for f in features for row in f], p["metric.0.weight"], p["metric.0.bias"]))
    embedded = leaky(affine(hidden, p["metric.2.weight"], p["metric.2.bias"]))
    return sum(pairs) / len(pairs), local_loss(embedded, [y_i for y in labels for y_i in y], case["margin"])


def clip(flat, norm):
    """Each tensor shortened to the norm, if it is longer."""
    clipped = []
    for value in unflatten(flat).values():
        length = np.sqrt(sum(x**2 for x in value.ravel()))
        clipped.append(value.ravel() * (norm / length if length > norm else 1.0))
    return np.concatenate(clipped)


def step(theta, case):
    """(theta', total loss, total gradient) of one step."""
    inner = complex_gradient(lambda t: task_loss(t, case), theta)
    fast = theta - case["inner_lr"] * clip(inner, case["clip_norm"])

    def meta(t):
        alignment, triplet = meta_losses(t, case)
        return case["alignment"] * alignment + case["triplet"] * triplet

    outer = clip(complex_gradient(meta, fast), case["clip_norm"])
    total = task_loss(theta.astype(complex), case).real + np.real(meta(fast.astype(complex)))
    return fast, total, inner + outer
