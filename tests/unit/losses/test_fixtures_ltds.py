"""The worked examples of LT-DS, computed elsewhere in float64, to 1e-9; "released" values by the options for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.losses.augmentation import augmentation_loss, augmented_logits, strength_at
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts
from ltds.losses.kernels.linear import linear_cross_entropy
from ltds.losses.semantic_alignment import prototype_contrast, semantic_alignment_loss
from ltds.losses.semantic_to_visual import semantic_to_visual_loss
from ltds.losses.visual_to_semantic import semantic_logits, visual_to_semantic_loss
from ltds.nn.inner_step import fast_weights, gradients
from ltds.nn.projector import Projector
from ltds.stats.covariance import OnlineCovariance
from ltds.stats.neighbours import neighbour_covariance, semantic_neighbours
from ltds.stats.prototypes import BlendedPrototypes, Prototypes, completed_prototypes
from reference import equations as eq

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"


def tensor(value):
    return torch.from_numpy(np.asarray(value))  # float64 or int64, as written


def close(actual, expected):
    wanted = torch.as_tensor(expected, dtype=torch.float64)
    assert_close(torch.as_tensor(actual, dtype=torch.float64).detach(), wanted, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def examples():
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not next to this repository ({FILE.name})")
    return json.loads(FILE.read_text())["examples"]


def load(examples, name):
    example = examples[name]
    return {k: tensor(v) if isinstance(v, list) else v for k, v in example["inputs"].items()}, example["expected"]


def test_l_dc(examples):
    given, wanted = load(examples, "l_dc")
    logits, counts = given["logits"].requires_grad_(), given["counts_per_domain"]
    loss = calibrated_cross_entropy(logits, given["labels"], log_counts(counts)[given["domains"]])
    close(loss, wanted["per_sample"])
    close(loss.mean(), wanted["mean"])
    (gradient,) = torch.autograd.grad(loss.mean(), logits)
    close(gradient, wanted["grad_of_mean_wrt_logits"])
    assert (gradient[counts[given["domains"]] == 0] == 0).all()
    plain = calibrated_cross_entropy(logits, given["labels"], torch.zeros(5).double())
    close(plain, wanted["plain_ce_per_sample"])
    pooled = calibrated_cross_entropy(logits, given["labels"], log_counts(counts.sum(0)))
    close(pooled, wanted["pooled_counts_bsce_per_sample"])
    close(pooled.mean(), wanted["pooled_counts_bsce_mean"])


def test_l_z2s(examples):
    given, wanted = load(examples, "l_z2s")
    projected, labels, s = given["e_of_f"].requires_grad_(), given["labels"], given["s_unit"]
    sphere = {"margin": given["alpha"], "temperature": given["tau"]}
    log_n = log_counts(given["counts_per_domain"])[given["domains"]]
    close(semantic_logits(projected, labels, s, **sphere), wanted["logits_after_margin_and_scale"])
    plain = visual_to_semantic_loss(projected, labels, s, **sphere)
    close(plain, wanted["per_sample_plain"])
    close(plain.mean(), wanted["mean_plain"])
    calibrated = visual_to_semantic_loss(projected, labels, s, log_n=log_n, **sphere)
    close(calibrated, wanted["per_sample_calibrated"])
    close(calibrated.mean(), wanted["mean_calibrated"])
    (gradient,) = torch.autograd.grad(calibrated.mean(), projected)
    close(gradient, wanted["grad_mean_calibrated_wrt_e_of_f"])
    close((gradient * projected).sum(1), torch.zeros(4))  # only the direction of e(f) counts


@pytest.mark.parametrize("fused", [False, True])
def test_l_s2s(examples, fused):
    given, wanted = load(examples, "l_s2s")
    m, n, o, s = (given[k] for k in ("s_hat_m", "s_hat_n", "s_hat_o", "s_unit"))
    sphere = {"margin": given["alpha"], "temperature": given["tau"]}
    close(prototype_contrast(m, n, **sphere), wanted["per_class_m_to_n"])
    close(prototype_contrast(m, n, **sphere).mean(), wanted["mean_m_to_n"])
    close(prototype_contrast(n, m, **sphere), wanted["per_class_n_to_m"])
    close(prototype_contrast(n, m, **sphere).mean(), wanted["mean_n_to_m"])
    two, three = torch.stack([m, n]), torch.stack([m, n, o])
    sphere["fused"] = fused
    close(semantic_alignment_loss(two, s, to_semantics=False, **sphere), wanted["symmetrised"])
    released = semantic_alignment_loss(two, s, to_semantics=False, negatives="released", **sphere)
    close(released, wanted["released_code_symmetrised"])
    close(2 * released - wanted["mean_n_to_m"], wanted["released_code_i_to_j_mean"])
    close(semantic_alignment_loss(m[None], s, **sphere), wanted["mean_m_to_s"])
    pairs = semantic_alignment_loss(three, s, to_semantics=False, **sphere)
    both = semantic_alignment_loss(three, s, **sphere)
    close(pairs, wanted["L_S2S_three_domains_pairs_only"])
    close(both - pairs, wanted["L_S2S_three_domains_to_s_only"])
    close(both, wanted["L_S2S_three_domains_paper"])


@pytest.mark.parametrize(("start", "epsilon"), [("zero", 0.0), ("first_visit", 0.0), ("zero", 1e-5)])
def test_prototype_ema(examples, start, epsilon):
    given, wanted = load(examples, "prototype_ema")
    store = Prototypes(1, 4, 3, momentum=given["momentum"], start=start, epsilon=epsilon).double()
    first = given["batch1_f"].requires_grad_()
    view = store.blended(first, given["batch1_y"], torch.zeros(3, dtype=torch.long))
    store.commit(view)
    if epsilon:
        close(store.value[0], wanted["zero_with_eps1e-5_after_batch1"])
        return
    name = "zero" if start == "zero" else "first"
    close(store.value[0], wanted[f"{name}_after_batch1"])
    if start == "zero":
        for row, key in ((0, "class0_batch1"), (2, "class2_batch1")):
            (gradient,) = torch.autograd.grad(view.value[0, row, 0], first, retain_graph=True)
            assert gradient.max() == wanted["d_v_c_d_f_i"][key]
    store.commit(store.blended(given["batch2_f"], given["batch2_y"], torch.zeros(2, dtype=torch.long)))
    close(store.value[0], wanted[f"{name}_after_batch2"])
    assert store.present[0].int().tolist() == wanted["mask_after_batch2"]


def set_projector(projector, given, name):
    values = [given[f"{name}_{k}"] for k in ("W", "b", "bn_gamma", "bn_beta")]
    with torch.no_grad():
        for parameter, value in zip(projector.parameters(), values, strict=True):
            parameter.copy_(value)
    return projector


@pytest.mark.parametrize("fused", [False, True])
def test_l_s2z_pipeline(examples, fused):
    given, wanted = load(examples, "l_s2z_pipeline")
    e, d = (set_projector(Projector(*w).double(), given, k) for k, w in (("e", (4, 3)), ("d", (3, 4))))
    s, mask = given["s_unit"], given["mask"].bool()
    close(e(given["v_n"][mask]), wanted["e_of_v_valid_rows"])
    nothing = torch.empty(0)
    view = BlendedPrototypes(torch.tensor([0]), given["v_n"][None], mask[None], nothing, nothing)
    table = completed_prototypes(view, s, e)
    close(table[0], wanted["s_hat_unit"])
    visual = d(table[0])
    close(visual, wanted["v_hat"])
    cycled = e(visual)
    close(torch.nn.functional.normalize(cycled, dim=1), wanted["e_of_v_hat_unit"])
    sphere = {"margin": given["alpha"], "temperature": given["tau"]}
    W, b, classes = given["h_W"], given["h_b"], torch.arange(4)
    for row, value in zip(visual, wanted["cls_per_class"], strict=True):
        close(linear_cross_entropy(row[None], W, b, classes[wanted["cls_per_class"].index(value)][None]), value)
    close(linear_cross_entropy(visual, W, b, classes, fused=fused), wanted["cls_mean"])
    per_class = prototype_contrast(torch.nn.functional.normalize(cycled, dim=1), s, **sphere)
    close(per_class, wanted["cycle_s2s_form_per_class"])
    close(visual_to_semantic_loss(cycled, classes, s, **sphere), wanted["cycle_z2s_form_per_class"])
    everything = (visual[None], W, b, cycled[None], s)
    only_cycle = {"weights": (0.0, 1.0), "fused": fused, **sphere}
    close(semantic_to_visual_loss(*everything, **only_cycle), wanted["cycle_s2s_form_mean"])
    close(semantic_to_visual_loss(*everything, cycle="z2s", **only_cycle), wanted["cycle_z2s_form_mean"])
    close(semantic_to_visual_loss(*everything, fused=fused, **sphere), wanted["L_s2z_paper"])
    released = semantic_to_visual_loss(*everything, cycle="z2s", weights=(0.5, 0.5), fused=fused, **sphere)
    close(released, wanted["L_s2z_released_code"])


@pytest.mark.parametrize(
    ("name", "full", "initial"), [("full", True, 0.0), ("diag", False, 0.0), ("diag_code_amount1", False, 1.0)]
)
def test_covariance_online(examples, name, full, initial):
    given, wanted = load(examples, "covariance_online")
    running = OnlineCovariance(2, 2, full=full, initial_count=initial).double()
    for batch in (1, 2):
        running.commit(running.updated(given[f"batch{batch}_f"], given[f"batch{batch}_y"]))
        close(running.sigma, wanted[f"{name}_after{batch}"])
    close(running.mean, wanted[f"{name}_mean"])
    close(running.count, wanted[f"{name}_n"])


def test_sigma_prime_topk(examples):
    given, wanted = load(examples, "sigma_prime_topk")
    near = semantic_neighbours(given["s"], given["k"])
    assert near.tolist() == wanted["topk_index"]
    close(neighbour_covariance(given["sigma"], near, given["n"]), wanted["sigma_prime_full"])
    diagonal = given["sigma"].diagonal(dim1=1, dim2=2).contiguous()
    close(neighbour_covariance(diagonal, near, given["n"]), wanted["sigma_prime_diag"])
    close(neighbour_covariance(given["sigma"], near, None), wanted["no_weight_full"])


@pytest.mark.parametrize("form", ["full", "diag"])
def test_l_aug(examples, form):
    given, wanted = load(examples, "l_aug")
    W, b, f, labels = given["W"].requires_grad_(), given["b"], given["f"], given["labels"]
    sigma, strength = given[f"sigma_prime_{form}"], given["lambda"]
    logits = f @ W.T + b
    close(augmented_logits(logits, labels, W, sigma, strength), wanted[f"aug_logits_{form}"])
    plain = augmentation_loss(logits, labels, W, sigma, strength)
    close(plain, wanted[f"plain_{form}_per_sample"])
    close(plain.mean(), wanted[f"plain_{form}_mean"])
    calibrated = augmentation_loss(logits, labels, W, sigma, strength, log_n=log_counts(given["counts"]))
    close(calibrated, wanted[f"calibrated_{form}_per_sample"])
    close(calibrated.mean(), wanted[f"calibrated_{form}_mean"])
    close(augmentation_loss(logits, labels, W, sigma, 0.0), wanted["ce_without_augmentation"])
    if form == "full":
        close(torch.autograd.grad(calibrated.mean(), W)[0], wanted["grad_calibrated_full_mean_wrt_W"])


def test_l_aug_bounds_the_exact_expectation(examples):
    """Eq. (6): the left side by quadrature, the right side ours; and the printed Eq. (8), which forgets f."""
    given, wanted = load(examples, "l_aug")
    W, b, f, labels = given["W"], given["b"], given["f"], given["labels"]
    bound = augmentation_loss(f @ W.T + b, labels, W, given["sigma_prime_full"], given["lambda"])
    for i, y in enumerate(labels.tolist()):
        sigma = given["sigma_prime_full"][y].tolist()
        exact = eq.expected_cross_entropy(f[i].tolist(), y, W.tolist(), b.tolist(), sigma, given["lambda"])
        assert exact == pytest.approx(wanted["exact_expected_ce_quadrature"][i], abs=1e-9)
        assert exact <= bound[i]
        printed = eq.aug_as_printed(f[i].tolist(), y, W.tolist(), sigma, given["lambda"])
        assert printed == pytest.approx(wanted["literal_printed_equation_per_sample"][i], abs=1e-9)


def test_l_aug_in_meta_test(examples):
    given, wanted = load(examples, "l_aug")
    slow, fast, f, labels = given["W"], given["W_fast_for_mismatch"], given["f"], given["labels"]
    sigma, strength = given["sigma_prime_diag"], given["lambda"]
    logits = f @ fast.T + given["b"]
    close(augmented_logits(logits, labels, fast, sigma, strength), wanted["fast_weights_right_diag_logits"])
    released = augmented_logits(logits, labels, slow, sigma, strength, true_weight=fast)
    close(released, wanted["fast_weights_released_code_diag_logits"])


def test_lambda_schedule(examples):
    given, wanted = load(examples, "lambda_schedule")
    when = {"start": given["T_sigma"], "end": given["T_max"]}
    ramp = [strength_at(epoch, peak=given["lambda_max"], **when) for epoch in range(100)]
    for epoch in (40, 41, 70, 99):
        close(ramp[epoch], wanted[f"epoch{epoch}"])
    close(sum(ramp[40:]) / 60, wanted["mean_over_40_to_99"])
    assert ramp[:40] == [None] * 40  # the loss term is absent
    assert strength_at(39, peak=5, schedule="constant", **when) is None
    assert strength_at(40, peak=5, schedule="constant", **when) == 5


@pytest.mark.parametrize("kind", ["quadratic", "logistic"])
@pytest.mark.parametrize("second_order", [False, True])
def test_meta_step(examples, kind, second_order):
    given, wanted = load(examples, f"meta_step_{kind}")

    def loss(theta, which):
        score = theta[0] * given[f"x_{which}"] + theta[1]
        target = given[f"y_{which}"]
        if kind == "quadratic":
            return (score - target).square().mean() / 2
        return torch.nn.functional.binary_cross_entropy_with_logits(score, target)

    theta = {"theta": given["theta"].requires_grad_()}
    train = loss(theta["theta"], "mtr")
    inner = gradients(train, theta, second_order=second_order)
    fast = fast_weights(theta, inner, given["beta1"])
    test = loss(fast["theta"], "mte")
    close(train, wanted["L_mtr"])
    close(inner[0], wanted["grad_mtr"])
    close(fast["theta"], wanted["theta_prime"])
    close(test, wanted["L_mte_at_theta_prime"])
    close(torch.autograd.grad(test, fast["theta"], retain_graph=True)[0], wanted["grad_mte_at_theta_prime"])
    if second_order:
        (total,) = gradients(train + given["w_mte"] * test, theta)
    else:
        total = inner[0] + given["w_mte"] * gradients(test, theta)[0]
    order = "second_order" if second_order else "first_order"
    close(total, wanted[f"total_gradient_{order}"])
    close(theta["theta"] - given["beta2"] * total, wanted[f"theta_next_{order}"])
    close(train + given["w_mte"] * test, wanted["total_loss"])


@pytest.mark.parametrize(
    ("clip", "key"), [("none", "released_code_effective"), ("global", "global"), ("per_tensor", "per_tensor")]
)
def test_inner_clip(examples, clip, key):
    given, wanted = examples["inner_clip"]["inputs"], examples["inner_clip"]["expected"]
    grads = [tensor(g) for g in given["grads"]]
    zeros = {str(i): torch.zeros_like(g) for i, g in enumerate(grads)}
    moved = fast_weights(zeros, grads, -1.0, clip=clip, clip_norm=given["max_norm"])
    for value, expected in zip(moved.values(), wanted[key], strict=True):
        close(value, expected)


def test_l_mz2s(examples):
    given, wanted = load(examples, "l_mz2s")
    sphere = {"margin": given["alpha"], "temperature": given["tau"]}
    log_n = log_counts(given["counts_meta_test_domain"])
    to_s = visual_to_semantic_loss(given["e_of_f"], given["labels"], given["s_unit"], log_n=log_n, **sphere).mean()
    tables = given["s_hat_prime"]
    to_prototypes = visual_to_semantic_loss(given["e_of_f"], given["labels"], tables, log_n=log_n, **sphere)
    close(to_s, wanted["to_s_mean"])
    close(to_prototypes.mean(1), wanted["to_prototypes_mean_per_domain"])
    close(to_s + to_prototypes.mean(), wanted["L_MZ2S"])
