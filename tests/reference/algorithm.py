"""Slow twin of one step of Algorithm 1 on a tiny linear model: Python loops, derivatives by steps, no autograd.

The model: f(x) = A x, h(v) = W v + b, e and d = activation(BatchNorm(linear)). Parameters are one flat vector in the
order of `SHAPES`; the inner gradient is taken by a complex step (exact), the total one by a central difference.
"""

from __future__ import annotations

import numpy as np
from derivative import complex_gradient, named

from reference import equations as eq

P, D, S, C = 3, 3, 2, 3


def shapes(classes):
    return {
        "f.weight": (D, P),
        "h.weight": (classes, D),
        "h.bias": (classes,),
        "e.0.weight": (S, D),
        "e.0.bias": (S,),
        "e.1.weight": (S,),
        "e.1.bias": (S,),
        "d.0.weight": (D, S),
        "d.0.bias": (D,),
        "d.1.weight": (D,),
        "d.1.bias": (D,),
    }


SHAPES = shapes(C)

# The readings of the paper that change a step, as we take them; case["reading"] has others.
OURS = {
    "released_negatives": False,  # cross negatives twice for m before n
    "to_semantics": True,  # L_S2S has its second term
    "back_weights": (1.0, 1.0),  # of the two terms of Eq. (5)
    "intra": 1.0,  # intra-domain negatives in the loop of Eq. (5)
    "first_visit": True,  # a prototype starts at its first mean, not at 0
    "epsilon": 0.0,  # added to the count under a prototype's mean
    "calibrated_aug": True,  # counts in Eq. (8)
    "slow_weights": False,  # meta-test: Eq. (8) has w_c of theta, w_y of theta'
}


def unflatten(theta, classes=C):
    return named(theta, shapes(classes))


def reading(case):
    return OURS | case.get("reading", {})


def projector(p, name, activation):
    names = [f"{name}.{part}" for part in ("0.weight", "0.bias", "1.weight", "1.bias")]
    return lambda rows: eq.project(rows, *(p[n] for n in names), activation)


def look(p, x):
    return [[eq.dot(row, x_i) for row in p["f.weight"]] for x_i in x]


def classify(p, f):
    return [eq.dot(w, f) + b for w, b in zip(p["h.weight"], p["h.bias"], strict=True)]


def meta_train(theta, case):
    """L_mtr of Algorithm 1, lines 4 to 10, with the prototypes it leaves behind."""
    p, r = unflatten(theta, len(case["s"])), reading(case)
    e, d = (projector(p, name, case["activation"]) for name in "ed")
    alpha, tau, s, w = case["alpha"], case["tau"], case["s"], case["w"]
    B = sum(len(case["batches"][n]["y"]) for n in case["mtr"])
    cls = to_s = aug = 0.0
    tables, views = [], {}
    for n in case["mtr"]:
        x, y, counts = case["batches"][n]["x"], case["batches"][n]["y"], case["n"][n]
        sigmas = case.get("sigma_seen_by", {}).get(n, case["sigma"])
        features = look(p, x)
        for f_i, e_i, y_i in zip(features, e(features), y, strict=True):
            cls = cls + eq.dc(classify(p, f_i), y_i, counts) / B
            to_s = to_s + eq.z2s(e_i, y_i, s, alpha, tau, counts) / B
            known = counts if r["calibrated_aug"] else None
            aug = aug + eq.aug(f_i, y_i, p["h.weight"], p["h.bias"], sigmas[y_i], case["strength"], known) / B
        views[n] = eq.prototypes(
            case["v"][n], case["present"][n], features, y, first_visit=r["first_visit"], epsilon=r["epsilon"]
        )
        tables.append(eq.complete(*views[n], s, e))
    s2s = eq.align(tables, s, alpha, tau, r["released_negatives"], r["to_semantics"])
    s2z = 0.0
    for table in tables:
        visual = d(table)
        back = eq.s2z(visual, p["h.weight"], p["h.bias"], e(visual), s, alpha, tau, r["back_weights"], r["intra"])
        s2z = s2z + back / len(tables)
    return cls + w[0] * to_s + w[1] * s2s + w[2] * s2z + w[3] * aug, views


def meta_test(theta, case, views, slow=None):
    """L_mte of Algorithm 1, lines 12 to 15, at the fast weights; the prototypes are constants."""
    p, r = unflatten(theta, len(case["s"])), reading(case)
    e = projector(p, "e", case["activation"])
    alpha, tau, s, w = case["alpha"], case["tau"], case["s"], case["w"]
    W, W_true = p["h.weight"], None
    if r["slow_weights"]:
        W, W_true = unflatten(slow, len(s))["h.weight"], W
    tables = [eq.complete(*views[m], s, e) for m in case["mtr"]]
    B = sum(len(case["batches"][n]["y"]) for n in case["mte"])
    total = 0.0
    for n in case["mte"]:
        x, y, counts = case["batches"][n]["x"], case["batches"][n]["y"], case["n"][n]
        features = look(p, x)
        for f_i, e_i, y_i in zip(features, e(features), y, strict=True):
            mz2s = eq.z2s(e_i, y_i, s, alpha, tau, counts)
            mz2s = mz2s + sum(eq.z2s(e_i, y_i, t, alpha, tau, counts) for t in tables) / len(tables)
            known = counts if r["calibrated_aug"] else None
            aug = eq.aug(f_i, y_i, W, p["h.bias"], case["sigma"][y_i], case["strength"], known, W_true)
            total = total + (eq.dc(classify(p, f_i), y_i, counts) + w[0] * mz2s + w[3] * aug) / B
    return total


def real_views(views):
    return {n: ([[float(np.real(x)) for x in row] for row in value], mask) for n, (value, mask) in views.items()}


def fast_weights(theta, case):
    return theta - case["beta1"] * complex_gradient(lambda t: meta_train(t, case)[0], theta)


def total_loss(theta, case, constant_views):
    """L_mtr(theta) + w_mte L_mte(theta - beta1 grad L_mtr(theta)), a function of theta."""
    loss, _ = meta_train(theta, case)
    return loss + case["w_mte"] * meta_test(fast_weights(theta, case), case, constant_views, slow=theta)


def first_order(theta, case):
    """G = grad L_mtr(theta) + w_mte grad L_mte(theta'): theta' moves as theta does."""
    _, views = meta_train(theta, case)
    inner = complex_gradient(lambda t: meta_train(t, case)[0], theta)
    way = theta - case["beta1"] * inner - theta
    outer = complex_gradient(lambda t: meta_test(t + way, case, real_views(views), slow=t), theta)
    return inner + case["w_mte"] * outer


def second_order(theta, case, direction, h=1e-5):
    """The derivative of `total_loss` along a direction, by a central difference."""
    _, views = meta_train(theta, case)
    views = real_views(views)
    up, down = (total_loss(theta + sign * h * direction, case, views) for sign in (1, -1))
    return (up - down) / (2 * h)
