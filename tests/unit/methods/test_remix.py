"""Remix: who gets the label, what the loss is, who is mixed with whom."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mixing_reference as slow
import numpy as np
import pytest
import torch
from torch import nn

from ltds.core.distributions import beta
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.losses.soft_labels import soft_label_loss
from ltds.methods.problem import Problem
from ltds.methods.remix import Remix, RemixConfig, label_share
from toy import toy_config, toy_session

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
CLOCK = Clock(seed=0, step=3, total=30, steps_per_epoch=1)


def smooth_remix(task: Task, **settings: object) -> Remix:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh())
    return Remix(RemixConfig.model_validate(settings), Problem(task=task, backbone=backbone, feature_dim=4)).double()


def batch_of(task: Task, size: int = 8) -> Batch:
    g = torch.Generator().manual_seed(1)
    domains = torch.arange(2).repeat_interleave(size)
    seen = [torch.tensor(task.seen[d].nonzero()[0]) for d in range(2)]
    labels = torch.cat([seen[d][torch.randint(len(seen[d]), (size,), generator=g)] for d in range(2)])
    images = torch.rand(2 * size, 3, 2, 2, generator=g, dtype=torch.float64)
    return Batch(images, labels, domains, torch.arange(2 * size))


def drawn(method: Remix, batch: Batch, clock: Clock) -> tuple[float, list[int], list[list[float]]]:
    """lambda and partners at their address, and the logits of the mixed images."""
    g = clock.generator("mix")
    share = float(beta(method.config.alpha, method.config.alpha, (), g))
    partners = torch.randperm(len(batch), generator=g)
    mixed = share * batch.images + (1 - share) * batch.images[partners]
    return share, partners.tolist(), method.predict(mixed).logits.tolist()


def test_the_worked_example() -> None:
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not beside this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["remix"]
    given, wanted = example["inputs"], example["expected"]
    n_i, n_j = torch.tensor(given["n_i"]), torch.tensor(given["n_j"])
    own = {s: label_share(s, n_i, n_j, kappa=given["kappa"], tau=given["tau"]) for s in given["lambda_x"]}
    assert own[0.3].tolist() == wanted["lambda_y_for_0.3"]
    assert own[0.7].tolist() == wanted["lambda_y_for_0.7"]
    criterion = Criterion(CriterionSettings(), Task("t", ("a", "b", "c"), ("x", "y"), "y", np.ones((1, 3), np.int64)))
    loss = soft_label_loss(
        criterion,
        torch.tensor(given["logits"], dtype=torch.float64),
        torch.stack([own[0.3], 1 - own[0.3]], dim=1),
        torch.tensor([given["y_i"], given["y_j"]]).T,
        torch.zeros(4, 2, dtype=torch.long),
    )
    assert loss.tolist() == pytest.approx(wanted["loss_per_sample_0.3"], abs=1e-9)
    assert loss.mean().item() == pytest.approx(wanted["loss_mean_0.3"], abs=1e-9)
    assert abs(loss.mean().item() - wanted["batch_mean_shortcut_0.3"]) > 0.03  # .958589, a public slip


def test_the_label_goes_to_the_rarer_class_as_in_the_twin() -> None:
    sizes = [1, 2, 3, 6, 9, 10, 100]
    n_i, n_j = (torch.tensor(n) for n in zip(*[(a, b) for a in sizes for b in sizes], strict=True))
    for share in (0.0, 0.2, 0.499, 0.5, 0.501, 0.8, 1.0):
        for kappa, tau in ((3.0, 0.5), (1.5, 0.9), (1.0, 0.5), (3.0, 0.0)):
            mine = label_share(share, n_i, n_j, kappa=kappa, tau=tau).tolist()
            twin = [slow.remix_label(share, a, b, kappa, tau) for a, b in zip(n_i.tolist(), n_j.tolist(), strict=True)]
            assert mine == twin


def test_a_ratio_of_exactly_kappa_counts_whatever_floats_make_of_it() -> None:
    n = torch.tensor([7, 21])
    for kappa in (3.0, 1.4):
        large = torch.tensor([round(7 * kappa * 10), round(21 * kappa * 10)])
        assert label_share(0.2, large, 10 * n, kappa=kappa, tau=0.5).tolist() == [0.0, 0.0]
        assert label_share(0.8, 10 * n, large, kappa=kappa, tau=0.5).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("criterion", ["ce", "dc"])
@pytest.mark.parametrize("step", range(4))
def test_the_loss_is_the_twin_s_and_not_the_average_s(toy: Manifest, criterion: str, step: int) -> None:
    task = toy.task("wax")
    method, batch, clock = smooth_remix(task, criterion=criterion), batch_of(task), replace(CLOCK, step=step)
    share, partners, logits = drawn(method, batch, clock)
    labels, sizes = batch.labels.tolist(), task.class_counts.tolist()
    counts = [task.counts[d].tolist() for d in batch.domains.tolist()] if criterion == "dc" else None
    loss = method.loss(batch, clock)
    wanted = slow.remix_mean(logits, labels, partners, share, sizes, 3.0, 0.5, counts)
    assert loss.total.item() == pytest.approx(wanted, rel=1e-6)
    assert loss.terms["classification"].item() == loss.total.item()
    if criterion == "ce":
        wrong = slow.remix_batch_mean_shortcut(logits, labels, partners, share, sizes, 3.0, 0.5)
        assert abs(loss.total.item() - wrong) > 1e-4


def test_pixels_keep_lambda_where_the_label_moves(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_remix(task), batch_of(task)
    seen: list[torch.Tensor] = []
    method.backbone.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    share, partners, _ = drawn(method, batch, CLOCK)
    method.loss(batch, CLOCK)
    assert len(seen) == 2  # one pass by `drawn`, one by the loss: all domains together
    torch.testing.assert_close(seen[1], share * batch.images + (1 - share) * batch.images[partners])
    assert 0 < share < 1
    assert {int(batch.domains[i] != batch.domains[j]) for i, j in enumerate(partners)} == {0, 1}


def test_draws_are_addressed_by_the_clock(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_remix(task), batch_of(task)
    first = method.loss(batch, CLOCK).total
    torch.rand(5)
    assert method.loss(batch, CLOCK).total == first
    assert all(method.loss(batch, c).total != first for c in (replace(CLOCK, seed=1), replace(CLOCK, step=4)))


@pytest.mark.parametrize("criterion", ["ce", "bsce", "dc", "adjusted", {"name": "equal", "rare_share": 0.2}])
def test_every_criterion_has_the_gradient_of_its_value(toy: Manifest, criterion: object) -> None:
    """A detached part would show: both images of a pair get gradient."""
    task = toy.task("wax")
    method, batch = smooth_remix(task, criterion=criterion), batch_of(task, 3)
    images = batch.images.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: method.loss(replace(batch, images=x), CLOCK).total, (images,))


def test_tau_0_is_mixup(toy: Manifest) -> None:
    task = toy.task("wax")
    method, batch = smooth_remix(task, tau=0.0), batch_of(task)
    share, partners, logits = drawn(method, batch, CLOCK)
    labels = batch.labels.tolist()
    mixed = [slow.mixed_one_hot(6, [(labels[i], share), (labels[j], 1 - share)]) for i, j in enumerate(partners)]
    wanted = sum(slow.soft_cross_entropy(z, y) for z, y in zip(logits, mixed, strict=True)) / len(logits)
    assert method.loss(batch, CLOCK).total.item() == pytest.approx(wanted, rel=1e-9)


def test_class_counts_are_facts_of_the_task_and_are_not_saved(toy: Manifest) -> None:
    method = toy_session(toy, "remix").method
    assert method.class_counts.tolist() == [17, 11, 4, 5, 1, 0]
    assert "class_counts" not in method.state_dict()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kappa": 0.5}, r"'method.kappa' was 0.5: .*it must be at least 1"),
        ({"tau": 0.0, "kappa": 4.0}, "kappa has no effect with tau=0"),
        ({"tau": 1.5}, "'method.tau' was 1.5"),
        ({"alpha": 0.0}, "'method.alpha' was 0.0"),
    ],
)
def test_bad_settings_are_refused(toy: Manifest, settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        toy_config(toy, "remix", method=settings)
