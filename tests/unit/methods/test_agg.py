"""Agg and its criteria: what each sample pays, and who gets gradient."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.losses.criteria import Criterion, CriterionSettings
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS, find_method
from toy import toy_session

CLOCK = Clock(seed=0, step=0, total=1, steps_per_epoch=1)


def linear_method(task: Task, criterion: str) -> Agg:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh())
    return Agg(AggConfig(criterion=criterion), Problem(task=task, backbone=backbone, feature_dim=4))


def batch_of(task: Task, sizes: tuple[int, int]) -> Batch:
    """Samples whose labels their domain has seen, unequally many of each domain."""
    generator = torch.Generator().manual_seed(1)
    domains = torch.cat([torch.full((size,), d) for d, size in enumerate(sizes)])
    choices = [torch.tensor(task.seen[d].nonzero()[0]) for d in range(2)]
    labels = torch.stack(
        [choices[int(d)][int(torch.randint(len(choices[int(d)]), (), generator=generator))] for d in domains]
    )
    images = torch.rand(len(domains), 3, 2, 2, generator=generator)
    return Batch(images, labels, domains, torch.arange(len(domains)))


@pytest.mark.parametrize("criterion", ["ce", "bsce", "dc"])
def test_the_loss_is_the_mean_over_domains_of_the_mean_over_samples(toy: Manifest, criterion: str) -> None:
    task = toy.task("wax")
    method, batch = linear_method(task, criterion), batch_of(task, (5, 3))
    logits = method.predict(batch.images).logits
    domain_means = []
    for d in (0, 1):
        losses = []
        for i in (batch.domains == d).nonzero().flatten().tolist():
            n = {"ce": torch.ones(6), "bsce": torch.tensor(task.class_counts), "dc": torch.tensor(task.counts[d])}
            weights = n[criterion] * torch.exp(logits[i])
            losses.append(-torch.log(weights[batch.labels[i]] / weights.sum()))
        domain_means.append(sum(losses) / len(losses))
    loss = method.loss(batch, CLOCK)
    torch.testing.assert_close(loss.total, (domain_means[0] + domain_means[1]) / 2)
    torch.testing.assert_close(loss.terms["classification"], loss.total.detach())


def test_an_open_class_gets_no_gradient_from_calibrated_losses_and_some_from_cross_entropy(toy: Manifest) -> None:
    task = toy.task("wax")
    for criterion, silent in (("ce", False), ("bsce", True), ("dc", True)):
        method = linear_method(task, criterion)
        method.loss(batch_of(task, (6, 6)), CLOCK).total.backward()
        row = method.classifier.weight.grad[5]
        assert bool((row == 0).all()) is silent, criterion


def test_a_class_missing_in_one_domain_gets_no_gradient_from_it(toy: Manifest) -> None:
    task = toy.task("wax")  # 'cat' (2) lives in ink, not in oil
    criterion = Criterion(CriterionSettings(name="dc"), task)
    logits = torch.zeros(2, 6, requires_grad=True)
    criterion(logits, torch.tensor([0, 0]), torch.tensor([0, 1])).sum().backward()
    assert logits.grad[0, 2] > 0
    assert logits.grad[1, 2] == 0


def test_counts_are_facts_of_the_task_and_are_not_saved(toy: Manifest) -> None:
    assert "criterion.log_n" not in linear_method(toy.task("wax"), "dc").state_dict()


def test_every_domain_goes_through_batchnorm_by_itself(toy: Manifest) -> None:
    session = toy_session(toy)
    seen: list[int] = []
    session.method.backbone.register_forward_hook(lambda m, args, out: seen.append(len(args[0])))
    session.method.loss(session.batch(0), CLOCK)
    assert seen == [8, 8]


def test_with_joint_forward_batchnorm_sees_all_domains_at_once(toy: Manifest) -> None:
    task = toy.task("wax")
    batch = batch_of(task, (5, 3))
    losses = {}
    for joint in (False, True):
        torch.manual_seed(0)
        backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.BatchNorm1d(4, momentum=1.0))
        method = Agg(AggConfig(joint_forward=joint), Problem(task=task, backbone=backbone, feature_dim=4))
        losses[joint] = method.loss(batch, CLOCK).total.item()
        shown = batch.images if joint else batch.of(1).images
        torch.testing.assert_close(backbone[2].running_mean, backbone[1](shown.flatten(1)).mean(dim=0))
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)
    with pytest.raises(ValidationError, match="joint_forward has no effect with MixStyle"):
        AggConfig(joint_forward=True, mixstyle={"p": 0.5})


def test_methods_differ_where_they_say() -> None:
    assert {name: METHODS[name].settings.get("criterion", "ce") for name in ("agg", "bsce", "dc")} == {
        "agg": "ce",
        "bsce": "bsce",
        "dc": "dc",
    }


def test_a_user_s_own_method_must_be_a_method() -> None:
    assert find_method("ltds.methods.agg:Agg").method is Agg
    with pytest.raises(ConfigError, match="to be a subclass of ltds"):
        find_method("ltds.methods.agg:AggConfig")
