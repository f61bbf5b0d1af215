"""`contrast_classes`: L_S2S and L_S2Z over a sample of the classes, as part of a step and of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_meta_ltds import make
from torch import Tensor

from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.engine.identity import identity
from ltds.engine.loop import train
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from reference import equations as eq
from reference import sampled_equations as sampled
from resuming import journal, stop_and_resume
from toy import recorded, toy_config, toy_session

CLOCK = Clock(seed=0, step=3, total=100, steps_per_epoch=1)
COUNTS = np.full((3, 9), 5)
COUNTS[:, -1] = 0
COUNTS[0, 4] = 0


def some_classes(seed: int = 0) -> Batch:
    """Three domains whose images are of classes 1 and 3."""
    rng = np.random.default_rng(seed)
    images = torch.as_tensor(rng.normal(size=(12, 3, 2, 2)))
    labels = torch.tensor([1, 3, 3, 1] * 3)
    return Batch(images, labels, torch.arange(3).repeat_interleave(4), torch.arange(12))


def prepared(**settings: Any) -> MetaLtds:
    method = make(COUNTS, **settings)
    method.prototypes.present.copy_(torch.tensor(COUNTS > 0))
    method.prototypes.value.copy_(torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(2)))
    return method


def step(method: MetaLtds, clock: Clock = CLOCK) -> tuple[dict[str, Tensor], list[Tensor | None]]:
    method.zero_grad(set_to_none=True)
    found = method.loss(some_classes(), clock)
    found.total.backward()
    return {name: value.detach() for name, value in found.terms.items()}, [p.grad for p in method.parameters()]


@pytest.mark.parametrize("size", [9, 10, 1000])
@pytest.mark.parametrize("order", ["first", "second"])
def test_as_many_as_there_are_is_exactly_the_full_loss(size: int, order: str) -> None:
    full, same = prepared(gradient_order=order), prepared(gradient_order=order, contrast_classes=size)
    (terms, gradients), (other_terms, other_gradients) = step(full), step(same)
    assert all(torch.equal(terms[name], other_terms[name]) for name in terms)
    for one, other in zip(gradients, other_gradients, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("order", ["first", "second"])
def test_a_sampled_step_equals_the_slow_twin(order: str, hidden: bool) -> None:
    """e and d see the prototypes of the sampled classes only."""
    method = prepared(gradient_order=order, contrast_classes=4, hide_open_names=hidden)
    R = 8 if hidden else 9
    sample = method._sample(some_classes().labels, CLOCK)
    assert sample is not None
    batch, drawn = sample.classes[:2].tolist(), sample.classes[2:].tolist()
    assert batch == [1, 3]
    domains = sorted(method._split(CLOCK)[0])
    views = [twin_view(method, n) for n in domains]
    s = method.semantics.vectors.numpy()
    e, d = (twin_projector(p) for p in (method.to_semantic, method.to_visual))
    W, b = (x.detach().numpy()[:R] for x in (method.classifier.weight, method.classifier.bias))
    terms, _ = step(method)

    classes = [*batch, *drawn]
    tables, backs = [], []
    for value, present in views:
        part = eq.complete([value[c] for c in classes], [present[c] for c in classes], s[classes], e)
        table, visual, cycled = ({}, {}, {})
        for into, rows in ((table, part), (visual, d(part)), (cycled, e(d(part)))):
            into.update(zip(classes, rows, strict=True))
        tables.append([table.get(c, s[c]) for c in range(R)])
        wide = [[visual.get(c, [0.0] * 4) for c in range(R)], [cycled.get(c, [1.0] * 3) for c in range(R)]]
        backs.append(sampled.s2z(wide[0], W, b, wide[1], s, batch, drawn, 0.1, 0.5))
    assert terms["s2s"].item() == pytest.approx(float(sampled.align(tables, s, batch, drawn, 0.1, 0.5)), rel=1e-9)
    assert terms["s2z"].item() == pytest.approx(float(sum(backs)) / len(backs), rel=1e-9)


def twin_view(method: MetaLtds, domain: int) -> tuple[list[list[float]], list[bool]]:
    """The prototypes of a domain after the batch, by the slow formula."""
    batch = some_classes().of(domain)
    features = method.backbone(batch.images).tolist()
    old, present = method.prototypes.value[domain].tolist(), method.prototypes.present[domain].tolist()
    return eq.prototypes(old, present, features, batch.labels.tolist())


def twin_projector(projector: torch.nn.Module):
    """The slow twin of e or d, with the same weights."""
    linear, norm = projector[0], projector[1]
    weights = [x.tolist() for x in (linear.weight, linear.bias, norm.weight, norm.bias)]
    return lambda rows: eq.project(rows, *weights, lambda x: max(x, 0.0))


def test_another_step_draws_other_classes() -> None:
    method = prepared(contrast_classes=4)
    drawn = {tuple(method._sample(some_classes().labels, Clock(0, i, 100, 1)).classes.tolist()) for i in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize("value", [1, -5])
def test_one_class_has_nothing_to_be_contrasted_with(value: int) -> None:
    with pytest.raises(ConfigError, match=r"contrast_classes.*0 \(the default\) or at least 2.*but got"):
        parse(MetaLtdsConfig, {"contrast_classes": value})


def test_it_is_refused_without_the_losses_it_is_for() -> None:
    with pytest.raises(ConfigError, match="contrast_classes"):
        parse(MetaLtdsConfig, {"contrast_classes": 100, "weights": {"s2s": 0.0, "s2z": 0.0}})


SMALL: dict[str, dict[str, Any]] = {
    "data": {"held_out": "", "batch_size": 2},
    "method": {"contrast_classes": 2},
}


@pytest.mark.parametrize("method", ["ltds", "ltds-paper"])
def test_a_sampled_run_resumes_bit_for_bit(toy: Manifest, tmp_path: Path, method: str) -> None:
    stop_and_resume(toy, tmp_path, method, 3, **SMALL)
    full = toy_session(toy, method, **SMALL | {"method": {}})
    run = recorded(full, tmp_path / "full")
    train(full, run)
    assert journal(run) != journal(type(run)(tmp_path / "straight")), "nothing was left out of a sample"


def test_runs_from_before_go_on(toy: Manifest) -> None:
    """The setting is part of a run's identity only where it is used."""
    plain, none, some = (
        identity(toy_config(toy, "ltds", method=settings), toy)
        for settings in ({}, {"contrast_classes": 0}, {"contrast_classes": 2})
    )
    assert plain == none != some


@pytest.mark.parametrize(
    ("value", "classes", "expected"),
    [(0, 1999, 1999), (0, 2000, 1000), (0, 9000, 1000), (9000, 9000, 9000), (50, 9000, 50), (50, 9, 9)],
)
def test_how_many_classes_are_contrasted(value: int, classes: int, expected: int) -> None:
    assert parse(MetaLtdsConfig, {"contrast_classes": value}).contrasted(classes) == expected
