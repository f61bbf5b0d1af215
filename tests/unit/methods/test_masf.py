"""MASF: a whole step against its slow twin, the ways of its gradients, and its settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.methods.masf import Masf, MasfConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import masf_reference as twin

COUNTS = np.array([[30, 5, 2, 1], [2, 9, 4, 0], [1, 8, 20, 3]])
SIZE = 6
CLOCK = Clock(seed=0, step=1, total=10, steps_per_epoch=1)
# Both losses matter, some triplets are far enough apart, and the norm clips some tensors and not others.
TWIN = {"triplet": 0.3, "margin": 0.5, "clip_norm": 0.2, "inner_lr": 0.4, "temperature": 1.5, "alignment": 2.0}


def make(counts: np.ndarray = COUNTS, backbone: nn.Module | None = None, **settings: Any) -> Masf:
    classes = tuple(f"c{i}" for i in range(counts.shape[1]))
    domains = tuple(f"d{i}" for i in range(len(counts) + 1))
    config = parse(MasfConfig, {"metric_widths": [twin.HIDDEN, twin.E]} | settings)
    torch.manual_seed(2)
    backbone = backbone or nn.Linear(twin.PIXELS, twin.D, bias=False)
    task = Task("t", classes, domains, domains[-1], counts)
    method = Masf(config, Problem(task=task, backbone=backbone, feature_dim=twin.D)).double().train()
    for parameter in method.metric.parameters():
        parameter.data.mul_(5)  # so that distances are of the size of the margin
    return method


def make_batch(seed: int = 0) -> tuple[Batch, list[tuple[np.ndarray, list[int]]]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, SIZE, twin.PIXELS))
    y = np.stack([rng.choice(np.flatnonzero(row), SIZE) for row in COUNTS])
    domains = torch.arange(3).repeat_interleave(SIZE)
    batch = Batch(torch.as_tensor(x.reshape(-1, twin.PIXELS)), torch.as_tensor(y.ravel()), domains, domains)
    return batch, [(x[d], y[d].tolist()) for d in range(3)]


def stepped(method: Masf, clock: Clock = CLOCK) -> tuple[StepLoss, dict[str, Tensor]]:
    method.zero_grad()
    loss = method.loss(make_batch()[0], clock)
    loss.total.backward()
    return loss, {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in method.named_parameters()}


def held_out(step: int) -> int:
    draws = Clock(seed=0, step=step, total=10, steps_per_epoch=1).generator("split")
    return int(torch.randint(3, (), generator=draws))


@pytest.mark.parametrize("step", range(4))
def test_a_step_is_the_slow_twin(step: int) -> None:
    method = make(**TWIN)
    loss, got = stepped(method, Clock(seed=0, step=step, total=10, steps_per_epoch=1))
    assert list(got) == list(twin.SHAPES)
    theta = np.concatenate([p.detach().numpy().ravel() for p in method.parameters()])
    case = {**TWIN, "batches": make_batch()[1], "held": held_out(step)}
    fast, total, wanted = twin.step(theta, case)
    assert loss.total.item() == pytest.approx(float(total), abs=1e-12)
    np.testing.assert_allclose(np.concatenate([g.numpy().ravel() for g in got.values()]), wanted, rtol=0, atol=1e-11)
    assert np.abs(fast - theta).max() > 1e-3
    alignment, triplet = twin.meta_losses(fast.astype(complex), case)
    assert loss.terms["alignment"].item() == pytest.approx(alignment.real, abs=1e-12)
    assert loss.terms["triplet"].item() == pytest.approx(triplet.real, abs=1e-11)
    assert loss.terms["cls"].item() == pytest.approx(twin.task_loss(theta.astype(complex), case).real, abs=1e-12)


def test_every_source_has_its_turn() -> None:
    assert {held_out(step) for step in range(20)} == {0, 1, 2}


def test_the_metric_net_learns_from_the_triplet_alone() -> None:
    """The global loss does not reach it, nor does the task loss; the classifier gets nothing from the local loss."""
    _, both = stepped(make(**TWIN))
    _, local = stepped(make(**TWIN | {"alignment": 0.0, "temperature": 2.0}))
    for name in both:
        if name.startswith("metric."):
            assert both[name].abs().max() > 0
            torch.testing.assert_close(both[name], local[name])
    method = make(**TWIN | {"alignment": 0.0, "temperature": 2.0})
    _, got = stepped(method)
    held = held_out(CLOCK.step)
    batch = make_batch()[0]
    method.zero_grad()
    method._task_loss([batch.of(d) for d in range(3) if d != held], CLOCK).backward()
    assert method.classifier.weight.grad is not None
    torch.testing.assert_close(got["classifier.weight"], method.classifier.weight.grad)
    assert all(p.grad is None for p in method.metric.parameters())


def test_what_comes_from_theta_prime_is_clipped_tensor_by_tensor() -> None:
    """With huge weights each tensor's gradient lies within clip_norm of the task's, and the first ones on the edge."""
    settings = TWIN | {"alignment": 1e4, "triplet": 1e4, "clip_norm": 0.05}
    method = make(**settings)
    _, got = stepped(method)
    batch, held = make_batch()[0], held_out(CLOCK.step)
    method.zero_grad()
    method._task_loss([batch.of(d) for d in range(3) if d != held], CLOCK).backward()
    for name, parameter in method.named_parameters():
        task = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert (got[name] - task).norm().item() == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("criterion", ["ce", "bsce", "dc", "adjusted", {"name": "equal", "rare_share": 0.1}])
def test_any_criterion_works(criterion: Any) -> None:
    loss, got = stepped(make(criterion=criterion))
    assert torch.isfinite(loss.total)
    assert all(torch.isfinite(g).all() for g in got.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("criterion", "dc"),
        ("inner_lr", 0.2),
        ("clip_norm", 0.1),
        ("alignment", 3.0),
        ("temperature", 1.0),
        ("triplet", 0.1),
        ("margin", 1.0),
        ("metric_widths", [4, 3]),
    ],
)
def test_every_setting_changes_something(name: str, value: Any) -> None:
    _, before = stepped(make(**TWIN))
    _, after = stepped(make(**TWIN | {name: value}))
    if name == "metric_widths":
        assert before["metric.0.weight"].shape != after["metric.0.weight"].shape
    assert (before["backbone.weight"] - after["backbone.weight"]).abs().max() > 1e-8


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"alignment": 0.0, "triplet": 0.0}, "leave nothing to meta-learn: use the method agg"),
        ({"alignment": 0.0, "temperature": 1.0}, "temperature has no effect"),
        ({"triplet": 0.0, "margin": 1.0}, "margin has no effect"),
        ({"triplet": 0.0, "metric_widths": [4, 4]}, "metric_widths has no effect"),
    ],
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(MasfConfig, settings)


def test_one_source_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least 2 source domains for Masf .* has 1 \("):
        make(COUNTS[:1])


def test_without_shared_classes_or_pairs_it_is_the_task_loss() -> None:
    """Every domain holds one image of a class of its own: nothing to align, nothing to cluster."""
    method = make()
    batch = make_batch()[0]
    rows = torch.tensor([0, SIZE, 2 * SIZE])
    alone = Batch(batch.images[rows], torch.arange(3), torch.arange(3), rows)
    loss = method.loss(alone, CLOCK)
    loss.total.backward()
    assert loss.terms["alignment"].item() == loss.terms["triplet"].item() == 0
    assert loss.total.item() == pytest.approx(loss.terms["cls"].item())
    assert method.backbone.weight.grad is not None
    assert method.backbone.weight.grad.abs().max() > 0


def test_without_the_triplet_there_is_no_metric_net() -> None:
    parse(MasfConfig, {"triplet": 0.0})
    method = make(triplet=0.0, metric_widths=[1024, 256])
    assert not list(method.metric.parameters())
    loss, _ = stepped(method)
    assert set(loss.terms) == {"cls", "alignment"}


def test_frozen_parameters_stay_and_batchnorm_works() -> None:
    backbone = nn.Sequential(nn.Linear(twin.PIXELS, twin.D), nn.BatchNorm1d(twin.D), nn.ReLU())
    method = make(backbone=backbone)
    method.backbone[0].weight.requires_grad_(False)
    _, got = stepped(method)
    assert (got["backbone.0.weight"] == 0).all()
    assert got["backbone.1.weight"].abs().max() > 0
    assert method.backbone[1].num_batches_tracked == 2 + 3  # two domains at theta, three at theta'


def test_the_preset_has_the_original_settings() -> None:
    config = parse(MasfConfig, METHODS["masf"].settings)
    assert (config.clip_norm, config.temperature, config.margin, config.triplet) == (2.0, 2.0, 10.0, 0.005)
    assert config.criterion.name == "ce"
    assert config.inner_lr == 1e-5
    assert parse(MasfConfig, METHODS["masf-scratch"].settings) == config.model_copy(update={"inner_lr": 0.1})
