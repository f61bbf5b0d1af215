"""Slow twins of one step of Epi-FCR and of DAML on linear networks: Python loops, complex steps, no autograd.

A network: f(x) = A x, h(v) = W v + b. All parameters are one flat vector: the networks one after the other, each as A,
W, b in row-major order. What the methods draw is given.
"""

from __future__ import annotations

import numpy as np
from derivative import complex_gradient


def size(case):
    return case["D"] * case["P"] + case["C"] * case["D"] + case["C"]


def network(theta, i, case):
    P, D, C = case["P"], case["D"], case["C"]
    flat = theta[i * size(case) : (i + 1) * size(case)]
    A, W, b = flat[: D * P], flat[D * P : D * P + C * D], flat[D * P + C * D :]
    return np.reshape(A, (D, P)), np.reshape(W, (C, D)), b


def feature(A, x):
    return [sum(A[d][p] * x[p] for p in range(len(x))) for d in range(len(A))]


def logits(W, b, v):
    return [sum(W[c][d] * v[d] for d in range(len(v))) + b[c] for c in range(len(b))]


def ce(z, y, n=None):
    """-log n_y exp(z_y) / sum_c n_c exp(z_c)."""
    n = n if n is not None else [1.0] * len(z)
    return -np.log(n[y] * np.exp(z[y]) / sum(n_c * np.exp(z_c) for n_c, z_c in zip(n, z, strict=True)))


def softmax(z, T):
    mass = sum(np.exp(z_c / T) for z_c in z)
    return [np.exp(z_c / T) / mass for z_c in z]


# Epi-FCR (Li et al., ICCV 2019). Network 0 is the aggregated one, network 1 + n belongs to domain n.


def own_loss(theta, n, case):
    """CE(h_n(f_n(x_n)), y_n)."""
    A, W, b = network(theta, 1 + n, case)
    return mean_ce(case, n, lambda x: logits(W, b, feature(A, x)))


def aggregated_loss(theta, constant, case):
    """L / K as a function of f and h (theta); the partners come from `constant`."""
    K, v, t = len(case["x"]), case["v"], case["t"]
    A, W, b = network(theta, 0, case)
    A_t, W_t, b_t = network(constant, 1 + t, case)
    W_r, b_r = case["random"]
    total = 0.0
    for n in range(K):
        total = total + mean_ce(case, n, lambda x: logits(W, b, feature(A, x)))
        total = total + case["w_r"] * mean_ce(case, n, lambda x: logits(W_r, b_r, feature(A, x)))
    total = total + case["w_f"] * mean_ce(case, v, lambda x: logits(W_t, b_t, feature(A, x)))
    total = total + case["w_c"] * mean_ce(case, v, lambda x: logits(W, b, feature(A_t, x)))
    return total / K


def mean_ce(case, n, z):
    rows = zip(case["x"][n], case["y"][n], strict=True)
    return sum(ce(z(x), y, case["n"]) for x, y in rows) / len(case["y"][n])


def epi_step(theta, case):
    """The total, and its gradient with every part of it kept to its own networks."""
    K, s = len(case["x"]), size(case)
    total = sum(own_loss(theta, n, case) for n in range(K)) + aggregated_loss(theta, theta, case)
    gradient = np.zeros(len(theta))
    gradient[:s] = complex_gradient(lambda p: aggregated_loss(p, theta, case), theta)[:s]
    for n in range(K):
        mine = slice((1 + n) * s, (2 + n) * s)
        gradient[mine] = complex_gradient(lambda p, n=n: own_loss(p, n, case), theta)[mine]
    return total, gradient


# DAML (Shu et al., CVPR 2021). Network n belongs to domain n; `case["x"][half][domain]`, half 0 is meta-train.


def teachers(theta, case):
    """[domain][image]: sum_{m != n} r_m softmax(z_m(x) / T)."""
    K, table = case["K"], []
    for n in range(K):
        rows = []
        for i, x in enumerate(case["x"][0][n]):
            mixed = [0.0] * case["C"]
            for j, m in enumerate(m for m in range(K) if m != n):
                A, W, b = network(theta, m, case)
                p = softmax(logits(W, b, feature(A, x)), case["T"])
                mixed = [mixed[c] + case["r_teachers"][n][i][j] * p[c] for c in range(case["C"])]
            rows.append(mixed)
        table.append(rows)
    return table


def dir_mix(theta, half, case):
    total = 0.0
    for n in range(case["K"]):
        A, W, b = network(theta, n, case)
        picks, r = case["picks"][half][n], case["r_mix"][half][n]
        for i in range(len(r)):
            mixed, target = [0.0] * case["D"], [0.0] * case["C"]
            for m in range(case["K"]):
                j = picks[m][i]
                v = feature(A, case["x"][half][m][j])
                mixed = [mixed[d] + r[i][m] * v[d] for d in range(case["D"])]
                target[case["y"][half][m][j]] += r[i][m]
            p = softmax(logits(W, b, mixed), 1.0)
            total = total - sum(target[c] * np.log(p[c]) for c in range(case["C"])) / len(r)
    return total


def meta_train(theta, table, case):
    total = 0.0
    for n in range(case["K"]):
        A, W, b = network(theta, n, case)
        size_n = len(case["y"][0][n])
        for i, (x, y) in enumerate(zip(case["x"][0][n], case["y"][0][n], strict=True)):
            z = logits(W, b, feature(A, x))
            total = total + ce(z, y) / size_n
            p = softmax(z, case["T"])
            kl = sum(t_c * (np.log(t_c) - np.log(p_c)) for t_c, p_c in zip(table[n][i], p, strict=True))
            total = total + case["w2"] * case["T"] ** 2 * kl / size_n
    return total + case["w1"] * dir_mix(theta, 0, case)


def meta_test(theta, case):
    total = 0.0
    for n in range(case["K"]):
        for m in range(case["K"]):
            if m != n:
                A, W, b = network(theta, m, case)
                for x, y in zip(case["x"][1][n], case["y"][1][n], strict=True):
                    total = total + case["w3"] * ce(logits(W, b, feature(A, x)), y) / len(case["y"][1][n])
    return total + case["w4"] * dir_mix(theta, 1, case)


def daml_first_order(theta, case):
    """The total, and grad L_mtr(theta) + grad L_mte(theta')."""
    table = teachers(theta, case)
    inner = complex_gradient(lambda p: meta_train(p, table, case), theta)
    fast = theta - case["inner_lr"] * inner
    total = meta_train(theta, table, case) + meta_test(fast, case)
    return total, inner + complex_gradient(lambda p: meta_test(p, case), fast)


def daml_second_order(theta, case, direction, h=1e-5):
    """The derivative of the total along a direction, by a central difference; the teachers are constants."""
    table = teachers(theta, case)

    def total(p):
        inner = complex_gradient(lambda q: meta_train(q, table, case), p)
        return meta_train(p, table, case) + meta_test(p - case["inner_lr"] * inner, case)

    return (total(theta + h * direction) - total(theta - h * direction)) / (2 * h)
