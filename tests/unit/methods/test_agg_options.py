"""Agg with MixStyle, with class embeddings and with logits adjusted after training."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.testing import assert_close

from ltds.core.config import merge, names, parse_overrides
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.losses import CriterionSettings
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.problem import Problem
from ltds.nn.small import TinyNet
from ltds.semantics.embeddings import ClassEmbeddings
from reference import equations as eq
from toy import toy_session

CLOCK = Clock(seed=0, step=3, total=10, steps_per_epoch=5)


def method_of(task: Task, embeddings: ClassEmbeddings | None = None, **settings: Any) -> Agg:
    torch.manual_seed(0)
    return Agg(
        AggConfig(**settings), Problem(task=task, embeddings=embeddings, backbone=TinyNet(8), feature_dim=8)
    ).train()


def batch_of(sizes: tuple[int, int] = (6, 6)) -> Batch:
    """Noise, with labels that both toy domains have."""
    generator = torch.Generator().manual_seed(1)
    domains = torch.cat([torch.full((size,), d) for d, size in enumerate(sizes)])
    labels = torch.tensor([0, 1, 3])[torch.randint(3, (len(domains),), generator=generator)]
    return Batch(torch.rand(len(domains), 3, 16, 16, generator=generator), labels, domains, torch.arange(len(domains)))


def embeddings_of(task: Task) -> ClassEmbeddings:
    return ClassEmbeddings(task.classes, torch.rand(len(task.classes), 5, generator=torch.Generator().manual_seed(2)))


def test_mixstyle_sees_all_domains_in_one_pass(toy: Manifest) -> None:
    method, seen = method_of(toy.task("wax"), mixstyle={"p": 1.0}), []
    method.backbone.register_forward_hook(lambda m, args, out: seen.append(len(args[0])))
    mixed = method.loss(batch_of(), CLOCK).total
    assert seen == [12]
    plain = method_of(toy.task("wax")).loss(batch_of(), CLOCK).total
    assert (mixed - plain).abs() > 1e-3


def test_mixstyle_draws_by_address(toy: Manifest) -> None:
    totals = []
    for step in (3, 3, 4):
        method = method_of(toy.task("wax"), mixstyle={"p": 1.0})
        totals.append(method.loss(batch_of(), Clock(0, step, 10, 5)).total.item())
    assert totals[0] == totals[1] != totals[2]


def test_every_domain_weighs_the_same_with_mixstyle_too(toy: Manifest) -> None:
    """Classifier rows of zeros: each sample pays log C, and the mean over domains of means is that again."""
    method = method_of(toy.task("wax"), mixstyle={"p": 0.5, "mix": "crossdomain"})
    nn.init.zeros_(method.classifier.weight)
    nn.init.zeros_(method.classifier.bias)
    assert method.loss(batch_of((9, 3)), CLOCK).total.item() == pytest.approx(math.log(6))


def test_mixstyle_does_nothing_at_test(toy: Manifest) -> None:
    images = batch_of().images
    mixing, plain = method_of(toy.task("wax"), mixstyle={"p": 1.0}).eval(), method_of(toy.task("wax")).eval()
    assert torch.equal(mixing.predict(images).logits, plain.predict(images).logits)
    assert set(mixing.state_dict()) == set(plain.state_dict())


def test_mixstyle_with_one_domain_is_refused(toy: Manifest) -> None:
    two = toy.task("wax")
    one = Task("one", two.classes, ("ink", "wax"), "wax", two.counts[:1])
    with pytest.raises(ConfigError, match=r"at least 2 source domains for Agg .* has 1 \(ink\)"):
        method_of(one, mixstyle={"p": 0.5})
    with pytest.raises(ConfigError, match="Expected a batch of two domains or more"):
        method_of(two, mixstyle={"p": 0.5}).loss(batch_of((4, 0)), CLOCK)


def test_embeddings_add_the_semantic_loss_without_counts(toy: Manifest) -> None:
    task = toy.task("wax")
    embeddings, batch = embeddings_of(task), batch_of((5, 3))
    method = method_of(task, embeddings, z2s=0.1, temperature=0.5)
    loss = method.loss(batch, CLOCK)
    means = []
    for domain in (0, 1):
        own = batch.of(domain)
        projected = method.to_semantic(method.backbone(own.images)).double().tolist()
        table = embeddings.vectors.double().tolist()
        values = [eq.z2s(p, int(y), table, 0.1, 0.5) for p, y in zip(projected, own.labels, strict=True)]
        means.append(sum(values) / len(values))
    assert loss.terms["z2s"].item() == pytest.approx(sum(means) / 2, rel=1e-5)
    assert_close(loss.total, loss.terms["classification"] + 0.1 * loss.terms["z2s"])
    assert_close(loss.terms["classification"], method_of(task).loss(batch, CLOCK).total)


def test_the_projector_learns_from_the_semantic_loss_alone_and_takes_no_part_at_test(toy: Manifest) -> None:
    task = toy.task("wax")
    method, plain = method_of(task, embeddings_of(task), z2s=0.1), method_of(task)
    for each in (method, plain):
        each.loss(batch_of(), CLOCK).total.backward()
    assert method.to_semantic[0].weight.grad.abs().max() > 0
    assert_close(method.classifier.weight.grad, plain.classifier.weight.grad)  # no part of L_z2s
    assert (method.backbone.body[0].weight.grad - plain.backbone.body[0].weight.grad).abs().max() > 0
    images = batch_of().images
    before = method.eval().predict(images).logits
    nn.init.constant_(method.to_semantic[0].weight, 7.0)
    assert torch.equal(method.predict(images).logits, before)
    assert "semantics" not in method.state_dict()


def test_embeddings_are_asked_for_where_they_are_used(toy: Manifest) -> None:
    assert Agg.uses_embeddings(AggConfig(z2s=0.1))
    assert not Agg.uses_embeddings(AggConfig())
    session = toy_session(toy, "agg-embeddings")
    assert session.method.semantics.shape == (6, 4)


def test_posthoc_trains_as_agg_and_predicts_with_the_prior_taken_off(toy: Manifest) -> None:
    task = toy.task("wax")
    method, plain = method_of(task, posthoc_tau=0.5), method_of(task)
    assert torch.equal(method.loss(batch_of(), CLOCK).total, plain.loss(batch_of(), CLOCK).total)
    images = batch_of().images
    shift = plain.eval().predict(images).logits - method.eval().predict(images).logits
    pooled = [17, 11, 4, 5, 1]  # of ink and oil; 'fox' has no image in them
    wanted = torch.tensor([0.5 * math.log(n / sum(pooled)) for n in pooled] + [0.0])
    assert_close(shift, wanted.expand(12, 6), rtol=0, atol=1e-5)


def test_posthoc_without_class_counts_is_refused(toy: Manifest) -> None:
    task = toy.task("wax")
    empty = Task("empty", task.classes, task.domains, "wax", task.counts * 0)
    with pytest.raises(ConfigError, match=r"class counts for method\.posthoc_tau"):
        method_of(empty, posthoc_tau=1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"posthoc_tau": 1.0, "criterion": "bsce"}, "doing both forms"),
        ({"posthoc_tau": 1.0, "criterion": {"name": "adjusted"}}, "doing both forms"),
        ({"posthoc_tau": -1.0}, "greater than or equal to 0"),
        ({"margin": 0.2}, "margin has no effect without the semantic loss"),
        ({"temperature": 0.2}, "temperature has no effect without the semantic loss"),
        ({"mixstyle": {"alpha": 0.2}}, "alpha has no effect without MixStyle"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AggConfig(**settings)


@pytest.mark.parametrize(
    ("preset", "overrides", "wanted"),
    [
        ("agg", ["method.criterion=bsce"], {"name": "bsce"}),
        ("bsce", ["method.criterion=dc"], {"name": "dc"}),
        ("la", ["method.criterion=bsce"], {"name": "bsce"}),
        ("la", ["method.criterion.name=bsce"], {"name": "bsce"}),
        ("la", ["method.criterion=equal", "method.criterion.gamma=0.5"], {"name": "equal", "gamma": 0.5}),
        ("la", ["method.criterion.tau=1.5"], {"name": "adjusted", "tau": 1.5, "zero_count": "blend"}),
        ("agg", ["method.criterion=adjusted", "method.criterion.tau=1.5"], {"name": "adjusted", "tau": 1.5}),
        ("bsce", ["method.criterion.name=adjusted", "method.criterion.tau=2.0"], {"name": "adjusted", "tau": 2.0}),
        ("ltds", ["method.criterion=equal", "method.criterion.gamma=0.5"], {"name": "equal", "gamma": 0.5}),
    ],
)
def test_overrides_of_the_criterion(preset: str, overrides: list[str], wanted: dict[str, Any]) -> None:
    config = resolve({"data": {"root": "x"}, "method": {"name": preset}}, parse_overrides(overrides))
    assert config.method.criterion == CriterionSettings(**wanted)  # type: ignore[attr-defined]
    assert resolve(config.to_dict()) == config


def test_an_override_that_the_criterion_does_not_use_is_named() -> None:
    with pytest.raises(ConfigError, match=r"In 'method\.criterion', tau has no effect with criterion 'bsce'"):
        resolve({"data": {"root": "x"}, "method": {"name": "bsce"}}, parse_overrides(["method.criterion.tau=1.5"]))


CHANGES: dict[str, tuple[dict[str, Any], Any]] = {  # beside what, and to what
    "criterion.name": ({}, "bsce"),
    "criterion.gamma": ({"criterion": {"name": "equal", "rare_share": 0.2}}, 0.2),
    "criterion.rare_share": ({"criterion": {"name": "equal", "rare_share": 0.2}}, 0.9),
    "criterion.tau": ({"criterion": {"name": "adjusted"}}, 0.5),
    "criterion.counts": ({"criterion": {"name": "adjusted"}}, "pooled"),
    "criterion.zero_count": ({"criterion": {"name": "adjusted"}}, "one"),
    "criterion.blend": ({"criterion": {"name": "adjusted", "zero_count": "blend"}}, 0.5),
    "posthoc_tau": ({}, 0.5),
    "mixstyle.p": ({}, 1.0),
    "mixstyle.alpha": ({"mixstyle": {"p": 1.0}}, 2.0),
    "mixstyle.stages": ({"mixstyle": {"p": 1.0}}, (1,)),
    "mixstyle.mix": ({"mixstyle": {"p": 1.0}}, "crossdomain"),
    "joint_forward": ({}, True),
    "z2s": ({"z2s": 0.1}, 0.2),
    "margin": ({"z2s": 0.1}, 0.2),
    "temperature": ({"z2s": 0.1}, 0.2),
}


@pytest.mark.parametrize("name", list(names(AggConfig)))
def test_every_setting_changes_something(toy: Manifest, name: str) -> None:
    """No dead flags: each one changes the loss or a prediction."""
    task = toy.task("wax")
    base, value = CHANGES[name]

    def outcome(settings: dict[str, Any]) -> torch.Tensor:
        method = method_of(task, embeddings_of(task), **settings)
        total = method.loss(batch_of(), CLOCK).total.detach()
        return torch.cat([total[None], method.eval().predict(batch_of().images).logits.detach().flatten()])

    group, _, setting = name.rpartition(".")
    change = {group: {setting: value}} if group else {setting: value}
    assert (outcome(base) - outcome(merge(base, change))).abs().max() > 1e-5
