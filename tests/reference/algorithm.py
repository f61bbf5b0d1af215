"""Slow twin of one step of Algorithm 1 on a tiny linear model: Python loops, derivatives by steps, no autograd.

The model: f(x) = A x, h(v) = W v + b, e and d = activation(BatchNorm(linear)). Parameters are one flat vector in the
order of `SHAPES`; the inner gradient is taken by a complex step (exact), the total one by a central difference.
"""

from __future__ import annotations

import numpy as np
from derivative import complex_gradient, named

from reference import equations as eq

P, D, S, C = 3, 3, 2, 3
SHAPES = {
    "f.weight": (D, P),
    "h.weight": (C, D),
    "h.bias": (C,),
    "e.0.weight": (S, D),
    "e.0.bias": (S,),
    "e.1.weight": (S,),
    "e.1.bias": (S,),
    "d.0.weight": (D, S),
    "d.0.bias": (D,),
    "d.1.weight": (D,),
    "d.1.bias": (D,),
}


def unflatten(theta):
    return named(theta, SHAPES)


def projector(p, name, activation):
    names = [f"{name}.{part}" for part in ("0.weight", "0.bias", "1.weight", "1.bias")]
    return lambda rows: eq.project(rows, *(p[n] for n in names), activation)


def meta_train(theta, case):
    """L_mtr of Algorithm 1, lines 4 to 10, with the prototypes it leaves behind."""
    p = unflatten(theta)
    e, d = (projector(p, name, case["activation"]) for name in "ed")
    alpha, tau, s, w = case["alpha"], case["tau"], case["s"], case["w"]
    B = sum(len(case["batches"][n]["y"]) for n in case["mtr"])
    cls = to_s = aug = 0.0
    features, tables, views = {}, [], {}
    for n in case["mtr"]:
        x, y = case["batches"][n]["x"], case["batches"][n]["y"]
        features[n] = [[eq.dot(row, x_i) for row in p["f.weight"]] for x_i in x]
        for f_i, e_i, y_i in zip(features[n], e(features[n]), y, strict=True):
            logits = [eq.dot(p["h.weight"][c], f_i) + p["h.bias"][c] for c in range(C)]
            cls = cls + eq.dc(logits, y_i, case["n"][n]) / B
            to_s = to_s + eq.z2s(e_i, y_i, s, alpha, tau, case["n"][n]) / B
            sigma = case["sigma"][y_i]
            aug = aug + eq.aug(f_i, y_i, p["h.weight"], p["h.bias"], sigma, case["strength"], case["n"][n]) / B
        views[n] = eq.prototypes(case["v"][n], case["present"][n], features[n], y)
        tables.append(eq.complete(*views[n], s, e))
    s2s = eq.align(tables, s, alpha, tau)
    s2z = 0.0
    for table in tables:
        visual = d(table)
        s2z = s2z + eq.s2z(visual, p["h.weight"], p["h.bias"], e(visual), s, alpha, tau) / len(tables)
    return cls + w[0] * to_s + w[1] * s2s + w[2] * s2z + w[3] * aug, views


def meta_test(theta, case, views):
    """L_mte of Algorithm 1, lines 12 to 15, at the fast weights; the prototypes are constants."""
    p = unflatten(theta)
    e = projector(p, "e", case["activation"])
    alpha, tau, s, w = case["alpha"], case["tau"], case["s"], case["w"]
    (n,) = case["mte"]
    x, y, counts = case["batches"][n]["x"], case["batches"][n]["y"], case["n"][n]
    tables = [eq.complete(*views[m], s, e) for m in case["mtr"]]
    features = [[eq.dot(row, x_i) for row in p["f.weight"]] for x_i in x]
    total = 0.0
    for f_i, e_i, y_i in zip(features, e(features), y, strict=True):
        logits = [eq.dot(p["h.weight"][c], f_i) + p["h.bias"][c] for c in range(C)]
        mz2s = eq.z2s(e_i, y_i, s, alpha, tau, counts)
        mz2s = mz2s + sum(eq.z2s(e_i, y_i, t, alpha, tau, counts) for t in tables) / len(tables)
        aug = eq.aug(f_i, y_i, p["h.weight"], p["h.bias"], case["sigma"][y_i], case["strength"], counts)
        total = total + (eq.dc(logits, y_i, counts) + w[0] * mz2s + w[3] * aug) / len(y)
    return total


def real_views(views):
    return {n: ([[float(np.real(x)) for x in row] for row in value], mask) for n, (value, mask) in views.items()}


def total_loss(theta, case, constant_views):
    """L_mtr(theta) + w_mte L_mte(theta - beta1 grad L_mtr(theta)), a function of theta."""
    loss, _ = meta_train(theta, case)
    inner = complex_gradient(lambda t: meta_train(t, case)[0], theta)
    return loss + case["w_mte"] * meta_test(theta - case["beta1"] * inner, case, constant_views)


def first_order(theta, case):
    """G = grad L_mtr(theta) + w_mte grad L_mte(theta')."""
    _, views = meta_train(theta, case)
    inner = complex_gradient(lambda t: meta_train(t, case)[0], theta)
    fast = theta - case["beta1"] * inner
    outer = complex_gradient(lambda t: meta_test(t, case, real_views(views)), fast)
    return inner + case["w_mte"] * outer


def second_order(theta, case, direction, h=1e-5):
    """The derivative of `total_loss` along a direction, by a central difference."""
    _, views = meta_train(theta, case)
    views = real_views(views)
    up, down = (total_loss(theta + sign * h * direction, case, views) for sign in (1, -1))
    return (up - down) / (2 * h)
