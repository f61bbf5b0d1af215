"""Slow twins of Eqs. (4) and (5) over a sample of the classes: whole tables, loops over the sampled classes.

Every class of the batch is in the sample; `drawn` of the others are. A class that was drawn stands for the classes
that could have been drawn in its place.
"""

from __future__ import annotations

import numpy as np

from reference.equations import dot, unit


def stands_for(j, c, batch, drawn, total):
    """How many classes j is counted for among the negatives of anchor c; for c = None, among the anchors."""
    if j in batch:
        return 1.0
    could = [k for k in range(total) if k not in batch and k != c]
    were = [k for k in drawn if k != c]
    return len(could) / len(were)


def s2s(m, n, batch, drawn, alpha, tau, cross=1.0, intra=1.0):
    """Eq. (4), m -> n, tables of all classes."""
    loss, total = 0.0, len(m)
    for c in [*batch, *drawn]:
        positive = np.exp((dot(m[c], n[c]) - alpha) / tau)
        across = within = 0.0
        for j in [*batch, *drawn]:
            if j != c:
                times = stands_for(j, c, batch, drawn, total)
                across = across + times * np.exp(dot(m[c], n[j]) / tau)
                within = within + times * np.exp(dot(m[c], m[j]) / tau)
        of_class = -np.log(positive / (positive + cross * across + intra * within))
        loss = loss + stands_for(c, None, batch, drawn, total) * of_class / total
    return loss


def align(tables, s, batch, drawn, alpha, tau, released=False, to_semantics=True):
    """L_S2S."""
    pairs = [(m, n) for m in range(len(tables)) for n in range(len(tables)) if m != n]
    loss = 0.0
    for m, n in pairs:
        weights = (2.0, 0.0) if released and m < n else (1.0, 1.0)
        loss = loss + s2s(tables[m], tables[n], batch, drawn, alpha, tau, *weights) / len(pairs)
    if to_semantics:
        loss = loss + sum(s2s(t, s, batch, drawn, alpha, tau) for t in tables) / len(tables)
    return loss


def s2z(visual, W, b, cycled, s, batch, drawn, alpha, tau, weights=(1.0, 1.0), intra=1.0):
    """Eq. (5) of one domain."""
    classification, total = 0.0, len(visual)
    for c in [*batch, *drawn]:
        terms = {j: np.exp(dot(W[j], visual[c]) + b[j]) for j in [*batch, *drawn]}
        negatives = sum(stands_for(j, c, batch, drawn, total) * terms[j] for j in terms if j != c)
        of_class = -np.log(terms[c] / (terms[c] + negatives))
        classification = classification + stands_for(c, None, batch, drawn, total) * of_class / total
    rows = [unit(row) for row in cycled]
    return weights[0] * classification + weights[1] * s2s(rows, s, batch, drawn, alpha, tau, 1.0, intra)
