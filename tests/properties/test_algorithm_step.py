"""One whole step of Algorithm 1, made of this package's pieces, against its slow twin: first and second order.

Twin: `reference/algorithm.py`, Python loops, complex-step and central differences, no autograd.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from ltds.losses.augmentation import augmentation_loss
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts
from ltds.losses.semantic_alignment import semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.visual_to_semantic import visual_to_semantic_loss
from ltds.nn.inner_step import call_with, fast_weights, gradients, submodule_weights
from ltds.nn.projector import Projector
from ltds.stats.prototypes import Prototypes, completed_prototypes
from reference import algorithm

C, D, S, P = algorithm.C, algorithm.D, algorithm.S, algorithm.P
SMOOTH = (nn.Softplus, lambda x: np.log(1 + np.exp(x)))
RELU = (nn.ReLU, lambda x: x if x.real > 0 else 0.0 * x)


def projector(activation, inputs, outputs):
    if activation is nn.ReLU:
        return Projector(inputs, outputs)
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), activation())


def make_model(activation):
    torch.manual_seed(4)
    net = nn.ModuleDict(
        {
            "f": nn.Linear(P, D, bias=False),
            "h": nn.Linear(D, C),
            "e": projector(activation, D, S),
            "d": projector(activation, S, D),
        }
    ).double()
    for name in ("e", "d"):
        nn.init.uniform_(net[name][1].weight, 0.5, 1.5)
        nn.init.uniform_(net[name][1].bias, 0.3, 1.0)
    return net


def make_case(activation, mtr=(0, 1), mte=(2,), **changes):
    """Four samples of each of three domains; domain 0 never holds class 2, domain 1 met classes 0 and 1 before."""
    rng = np.random.default_rng(0)
    labels = [[0, 1, 1, 0], [2, 0, 1, 2], [0, 2, 1, 1]]
    s = rng.normal(size=(C, S))
    case = {
        "mtr": mtr,
        "mte": mte,
        "batches": [{"x": rng.normal(size=(4, P)), "y": y} for y in labels],
        "n": [[30.0, 5.0, 0.0], [2.0, 9.0, 4.0], [1.0, 8.0, 20.0]],
        "s": s / np.linalg.norm(s, axis=1, keepdims=True),
        "sigma": rng.uniform(size=(C, D)),
        "strength": 2.0,
        "v": rng.uniform(size=(3, C, D)) * np.array([[[0], [0], [0]], [[1], [1], [0]], [[0], [0], [0]]]),
        "present": [[False] * 3, [True, True, False], [False] * 3],
        "alpha": 0.1,
        "tau": 0.5,
        "w": (0.1, 0.2, 0.15, 0.1),
        "beta1": 0.2,
        "w_mte": 0.3,
        "activation": activation,
    }
    return case | changes


def stores(case):
    prototypes = Prototypes(3, C, D).double()
    prototypes.value.copy_(torch.as_tensor(case["v"]))
    prototypes.present.copy_(torch.tensor(case["present"]))
    return prototypes


def domain(case, n):
    return torch.as_tensor(case["batches"][n]["x"]), torch.tensor(case["batches"][n]["y"])


def meta_train(net, weights, case, prototypes, fused):
    f, h, e, d = ((lambda x, m=m: call_with(net[m], submodule_weights(weights, m), x)) for m in "fhed")
    W, b, s = weights["h.weight"], weights["h.bias"], torch.as_tensor(case["s"])
    sphere = {"margin": case["alpha"], "temperature": case["tau"]}
    pairs = [domain(case, n) for n in case["mtr"]]
    per_domain = [f(x) for x, _ in pairs]
    features, labels = torch.cat(per_domain), torch.cat([y for _, y in pairs])
    domains = torch.cat([torch.full((len(y),), n) for n, (_, y) in zip(case["mtr"], pairs, strict=True)])
    log_n = log_counts(torch.tensor(case["n"]).double())[domains]
    logits = h(features)
    cls = calibrated_cross_entropy(logits, labels, log_n).mean()
    z2s = visual_to_semantic_loss(torch.cat([e(x) for x in per_domain]), labels, s, log_n=log_n, **sphere).mean()
    view = prototypes.blended(features, labels, domains)
    tables = completed_prototypes(view, s, e)
    visual = torch.stack([d(t) for t in tables])
    cycled = torch.stack([e(v) for v in visual])
    s2s = semantic_alignment_loss(tables, s, fused=fused, **sphere)
    s2z = semantic_to_visual_loss(visual, W, b, cycled, s, fused=fused, **sphere)
    aug = augmentation_loss(logits, labels, W, torch.as_tensor(case["sigma"]), case["strength"], log_n=log_n).mean()
    w = case["w"]
    return cls + w[0] * z2s + w[1] * s2s + w[2] * s2z + w[3] * aug, view.detach()


def meta_test(net, weights, case, view):
    e = lambda x: call_with(net["e"], submodule_weights(weights, "e"), x)  # noqa: E731
    s, sphere = torch.as_tensor(case["s"]), {"margin": case["alpha"], "temperature": case["tau"]}
    x, labels = domain(case, case["mte"][0])
    features = call_with(net["f"], submodule_weights(weights, "f"), x)
    logits = call_with(net["h"], submodule_weights(weights, "h"), features)
    log_n = log_counts(torch.tensor(case["n"][case["mte"][0]]).double())
    cls = calibrated_cross_entropy(logits, labels, log_n).mean()
    projected = e(features)
    mz2s = visual_to_semantic_loss(projected, labels, s, log_n=log_n, **sphere).mean()
    mz2s = (
        mz2s
        + visual_to_semantic_loss(projected, labels, completed_prototypes(view, s, e), log_n=log_n, **sphere).mean()
    )
    sigma = torch.as_tensor(case["sigma"])
    aug = augmentation_loss(logits, labels, weights["h.weight"], sigma, case["strength"], log_n=log_n).mean()
    return cls + case["w"][0] * mz2s + case["w"][3] * aug


def step_gradient(net, case, *, second_order, fused=False):
    """{name: G} of Algorithm 1, line 17, and the two losses."""
    theta = dict(net.named_parameters())
    train, view = meta_train(net, theta, case, stores(case), fused)
    inner = gradients(train, theta, second_order=second_order)
    fast = fast_weights(theta, inner, case["beta1"])
    test = meta_test(net, fast, case, view)
    if second_order:
        total = gradients(train + case["w_mte"] * test, theta)
    else:
        total = [a + case["w_mte"] * b for a, b in zip(inner, gradients(test, fast), strict=True)]
    return dict(zip(theta, total, strict=True)), train, test


def flat(net):
    parameters = dict(net.named_parameters())
    assert set(parameters) == set(algorithm.SHAPES)
    return np.concatenate([parameters[name].detach().numpy().ravel() for name in algorithm.SHAPES])


def compare(gradient, twin, tolerance):
    for name, wanted in algorithm.unflatten(twin).items():
        assert_close(gradient[name], torch.as_tensor(wanted), rtol=0, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")
        assert np.abs(wanted).max() > 1e-6 or name.endswith("0.bias"), f"{name} is not tested: no gradient"


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("activation", [SMOOTH, RELU], ids=["smooth", "relu"])
@pytest.mark.parametrize("mtr", [(0, 1), (1,)], ids=["two", "one"])
def test_first_order(activation, mtr, fused):
    net, case = make_model(activation[0]), make_case(activation[1], mtr=mtr)
    gradient, train, test = step_gradient(net, case, second_order=False, fused=fused)
    theta = flat(net)
    twin_train, views = algorithm.meta_train(theta, case)
    assert train.item() == pytest.approx(float(twin_train), abs=1e-10)
    fast = theta - case["beta1"] * algorithm.complex_gradient(lambda t: algorithm.meta_train(t, case)[0], theta)
    assert test.item() == pytest.approx(float(algorithm.meta_test(fast, case, views)), abs=1e-10)
    compare(gradient, algorithm.first_order(theta, case), 1e-9)


def test_second_order():
    """Equal to the numerical derivative of the total loss."""
    net, case = make_model(SMOOTH[0]), make_case(SMOOTH[1])
    gradient, _, _ = step_gradient(net, case, second_order=True)
    together = np.concatenate([gradient[name].numpy().ravel() for name in algorithm.SHAPES])
    for seed in range(6):
        direction = np.random.default_rng(seed).normal(size=len(together))
        wanted = algorithm.second_order(flat(net), case, direction)
        assert together @ direction == pytest.approx(wanted, abs=1e-7)
    first, _, _ = step_gradient(make_model(SMOOTH[0]), case, second_order=False)
    assert (gradient["f.weight"] - first["f.weight"]).abs().max() > 1e-4  # the orders do differ


def test_without_inner_rate_it_is_multi_domain_training():
    """beta1 = 0 makes both orders the gradient of L_mtr + .3 L_mte at theta."""
    net, case = make_model(SMOOTH[0]), make_case(SMOOTH[1], beta1=0.0)
    first, _, _ = step_gradient(net, case, second_order=False)
    second, _, _ = step_gradient(net, case, second_order=True)
    for name, value in first.items():
        assert_close(second[name], value, rtol=0, atol=1e-13)


def test_bare_it_is_sgd_on_cross_entropy():
    """Equal counts, all weights 0, no meta-test: the gradient of cross-entropy alone."""
    equal = [[7.0] * C] * 3
    net, case = make_model(SMOOTH[0]), make_case(SMOOTH[1], mtr=(1,), w=(0, 0, 0, 0), w_mte=0.0, n=equal, strength=0)
    gradient, _, _ = step_gradient(net, case, second_order=False)
    x, y = domain(case, 1)
    plain = torch.autograd.grad(F.cross_entropy(net["h"](net["f"](x)), y), [net["f"].weight, *net["h"].parameters()])
    for name, wanted in zip(("f.weight", "h.weight", "h.bias"), plain, strict=True):
        assert_close(gradient[name], wanted, rtol=0, atol=1e-14)
    assert all((gradient[name] == 0).all() for name in gradient if name[0] in "ed")


def test_back_projection_has_no_part_in_meta_test():
    net, case = make_model(RELU[0]), make_case(RELU[1])
    theta = dict(net.named_parameters())
    train, view = meta_train(net, theta, case, stores(case), False)
    fast = fast_weights(theta, gradients(train, theta), case["beta1"])
    outer = dict(zip(fast, gradients(meta_test(net, fast, case, view), fast), strict=True))
    assert all((value == 0).all() for name, value in outer.items() if name.startswith("d."))
    assert outer["e.0.weight"].abs().max() > 0
