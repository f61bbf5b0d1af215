"""The paper's method as a whole: against the slow twin of Algorithm 1, against its ablations, setting by setting."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from ltds.core.config import merge, names, parse
from ltds.core.errors import ConfigError, DataError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.engine.optim import build_optimizer
from ltds.engine.settings import OptimizerSettings
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import LtdsWeights, MetaLtdsConfig
from ltds.methods.meta_ltds_semantics import ClassSemantics
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS, find_method
from ltds.semantics.embeddings import ClassEmbeddings
from toy import toy_session

LATE = Clock(seed=0, step=90, total=100, steps_per_epoch=1)
EARLY = Clock(seed=0, step=0, total=100, steps_per_epoch=1)
COUNTS = np.array([[30, 5, 0, 2, 0], [2, 9, 4, 0, 0], [1, 8, 20, 0, 0], [3, 0, 6, 7, 0]])


def drawn_vectors(classes: int, width: int) -> Tensor:
    """(C,S) the class embeddings of these tests."""
    return torch.randn(classes, width, generator=torch.Generator().manual_seed(5))


def make(
    counts: np.ndarray = COUNTS,
    backbone: nn.Module | None = None,
    feature_dim: int = 4,
    width: int = 3,
    vectors: Tensor | None = None,
    **settings: Any,
) -> MetaLtds:
    """Float64, five classes of which the last is open, four source domains."""
    classes = tuple(f"c{i}" for i in range(counts.shape[1]))
    domains = tuple(f"d{i}" for i in range(len(counts) + 1))
    embeddings = ClassEmbeddings(classes, drawn_vectors(len(classes), width) if vectors is None else vectors)
    torch.manual_seed(4)
    config = MetaLtdsConfig(**{"neighbours": 2, "temperature": 0.5} | settings)
    backbone = backbone or nn.Sequential(nn.Flatten(), nn.Linear(12, feature_dim), nn.Softplus())
    task = Task("t", classes, domains, domains[-1], counts)
    torch.set_default_dtype(torch.float64)  # so that log n is exact too
    try:
        method = MetaLtds(config, Problem(task=task, embeddings=embeddings, backbone=backbone, feature_dim=feature_dim))
    finally:
        torch.set_default_dtype(torch.float32)
    return method.double().train()


def make_batch(counts: np.ndarray = COUNTS, size: int = 6, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    labels = [rng.choice(np.flatnonzero(row), size) for row in counts]
    images = torch.as_tensor(rng.normal(size=(size * len(counts), 3, 2, 2)))
    domains = torch.arange(len(counts)).repeat_interleave(size)
    return Batch(images, torch.tensor(np.concatenate(labels)), domains, torch.arange(len(domains)))


def gradient(method: MetaLtds, clock: Clock = LATE, steps: int = 1) -> dict[str, Tensor]:
    """The gradient after `steps` steps on the same weights: statistics move, parameters do not."""
    for seed in range(steps):
        method.zero_grad()
        method.loss(make_batch(method.task.counts, seed=seed), clock).total.backward()
    return {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in method.named_parameters()}


def test_without_an_inner_step_it_is_multi_domain_training() -> None:
    """The meta-test domain weighs .3 and everything is taken at theta."""
    method = make(inner_lr=0.0)
    got = gradient(method)
    plain = make(inner_lr=0.0)
    train, test = plain._split(LATE)
    batch, strength = make_batch(), plain.augmentation.strength(LATE)
    net = plain._functions()
    outputs = plain._forward(net, batch, train)
    prototypes = plain.prototypes.blended(outputs.features, outputs.labels, outputs.domains)
    inner, _, sigma = plain._meta_train(outputs, net, prototypes, strength, train, LATE)
    seen = plain._forward(net, batch, test)
    outer = plain._meta_test(seen, net, prototypes.detach(), sigma, strength, LATE)
    weights = {"cls": 1.0, "z2s": 0.1, "s2s": 0.1, "s2z": 0.1, "aug": 0.1}
    total = sum(weights[n] * v for n, v in inner.items()) + 0.3 * sum(weights[n] * v for n, v in outer.items())
    total.backward()
    for name, parameter in plain.named_parameters():
        assert_close(got[name], parameter.grad, rtol=0, atol=1e-12)


def test_the_strength_moves_once_an_epoch() -> None:
    method = make()
    at = {step: method.augmentation.strength(Clock(0, step, 1000, 10)) for step in (399, 400, 409, 410, 700, 999)}
    assert at[399] is None
    assert at[400] == at[409] == pytest.approx(0)
    assert at[410] == pytest.approx(10 / 60)
    assert at[700] == pytest.approx(5.0)
    assert at[999] == pytest.approx(10 * 59 / 60)


def test_the_augmentation_begins_at_the_epoch_that_its_share_names() -> None:
    """.55 x 100 is 55.00000000000001 in floating point, which would begin an epoch late."""
    method = make(covariance_start=0.55)
    at = [method.augmentation.strength(Clock(0, epoch, 100, 1)) for epoch in (54, 55, 56)]
    assert at[0] is None
    assert at[1:] == pytest.approx([0, 10 / 45])
    for epoch in (7, 14, 28, 29, 56, 57):  # as .55: a product with 100 that is not the whole number
        method = make(covariance_start=epoch / 100)
        assert method.augmentation.strength(Clock(0, epoch - 1, 100, 1)) is None
        assert method.augmentation.strength(Clock(0, epoch, 100, 1)) == pytest.approx(0)


def test_the_orders_differ_and_agree_without_an_inner_step() -> None:
    first, second = gradient(make()), gradient(make(gradient_order="second"))
    assert max((first[n] - second[n]).abs().max() for n in first) > 1e-5
    first, second = gradient(make(inner_lr=0.0)), gradient(make(inner_lr=0.0, gradient_order="second"))
    for name in first:
        assert_close(first[name], second[name], rtol=0, atol=1e-12)


def test_ablations_a_and_b_are_agg_and_dc(toy: Manifest) -> None:
    """Equal counts, no terms, no meta-learning: plain training."""
    for ours, plain in (("ltds-a", "agg"), ("ltds-b", "dc")):
        one, other = toy_session(toy, ours), toy_session(toy, plain)
        other.method.load_state_dict(one.method.state_dict(), strict=False)
        batch = one.batch(0)
        for session in (one, other):
            session.method.train().loss(batch, EARLY).total.backward()
        mine = dict(one.method.named_parameters())
        assert set(mine) == set(dict(other.method.named_parameters()))
        for name, parameter in other.method.named_parameters():
            assert_close(mine[name].grad, parameter.grad, rtol=1e-5, atol=1e-7)


def test_bare_a_step_is_plain_sgd_on_cross_entropy() -> None:
    """Constant n, lambda 0, one domain, w_1 .. w_4 = 0, no meta-test; L_dc is then cross-entropy."""
    counts = np.full((1, 5), 7)
    weights = LtdsWeights(z2s=0.0, s2s=0.0, s2z=0.0, augmentation=0.0)
    method = make(counts, weights=weights, meta_test_domains=0, neighbours=5, temperature=1 / 30)
    plain = copy.deepcopy(method)
    optimizers = [build_optimizer(net, OptimizerSettings(lr=0.3)) for net in (method, plain)]
    for seed in range(3):
        batch = make_batch(counts, seed=seed)
        losses = (
            method.loss(batch, LATE).total,
            F.cross_entropy(plain.classifier(plain.backbone(batch.images)), batch.labels),
        )
        for optimizer, loss in zip(optimizers, losses, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for mine, theirs in zip(method.parameters(), plain.parameters(), strict=True):
        assert_close(mine, theirs, rtol=0, atol=1e-13)


def test_the_row_of_a_class_without_images_changes_only_by_weight_decay() -> None:
    """Of L_dc with meta-learning, and of ltds without the names of open classes."""
    for settings in ({"hide_open_names": True}, METHODS["ltds-d"].settings):
        bare = "weights" in settings
        method = make(**{**settings, **({"neighbours": 5, "temperature": 1 / 30} if bare else {})})
        optimizer = build_optimizer(method, OptimizerSettings(lr=0.3, momentum=0.0, weight_decay=0.01))
        wanted = method.classifier.weight[4].detach().clone()
        seen = method.classifier.weight[0].detach().clone()
        for seed in range(3):
            optimizer.zero_grad()
            method.loss(make_batch(seed=seed), LATE).total.backward()
            optimizer.step()
            wanted = wanted - 0.3 * 0.01 * wanted
        assert_close(method.classifier.weight[4], wanted, rtol=0, atol=1e-15)
        assert (method.classifier.weight[0] - seen).abs().max() > 0.01


def test_each_ablation_has_the_terms_of_its_row(toy: Manifest) -> None:
    semantic, visual = ["z2s", "s2s", "s2z"], ["aug"]
    rows = {
        "a": [],
        "b": [],
        "c": ["meta_cls"],
        "d": ["meta_cls"],
        "e": ["z2s"],
        "f": ["z2s", "s2s"],
        "g": semantic,
        "h": visual,
        "i": semantic + visual,
        "j": [*semantic, *visual, "meta_cls", "meta_z2s", "meta_aug"],
    }
    rows |= {"k": rows["j"], "l": rows["j"]}
    for letter, terms in rows.items():
        session = toy_session(toy, f"ltds-{letter}")
        loss = session.method.train().loss(session.batch(0), LATE)
        assert sorted(loss.terms) == sorted(["cls", *terms]), letter
        assert session.config.method.criterion.name == ("ce" if letter in "ac" else "dc")
    before = toy_session(toy, "ltds-j").method.train()
    assert "aug" not in before.loss(session.batch(0), EARLY).terms


CHANGES: dict[str, Any] = {
    "criterion.name": "ce",
    "criterion.gamma": 0.5,
    "criterion.rare_share": 0.1,
    "criterion.tau": 0.5,
    "criterion.counts": "pooled",
    "criterion.zero_count": "one",
    "criterion.blend": 0.5,
    "weights.z2s": 0.2,
    "weights.s2s": 0.2,
    "weights.s2z": 0.2,
    "weights.augmentation": 0.2,
    "weights.meta_test": 0.6,
    "margin": 0.3,
    "temperature": 0.4,
    "hide_open_names": True,
    "meta_test_domains": 2,
    "gradient_order": "second",
    "inner_lr": 0.1,
    "inner_clip": "global",
    "inner_clip_norm": 0.05,
    "meta_test_statistics": False,
    "joint_forward": True,
    "sum_domains": True,
    "calibrated_z2s": False,
    "s2s_negatives": "released",
    "align_to_semantics": False,
    "s2z_weights": (0.5, 0.5),
    "cycle_form": "z2s",
    "contrast_classes": 4,
    "prototype_gradient": False,
    "prototype_start": "zero",
    "prototype_epsilon": 0.1,
    "prototype_momentum": 0.9,
    "single_prototype": True,
    "covariance_start": 0.2,
    "covariance": "full",
    "covariance_pseudo_sample": True,
    "covariance_order": "interleaved",
    "neighbours": 3,
    "neighbour_weights": "none",
    "strength": 3.0,
    "strength_schedule": "constant",
    "calibrated_augmentation": False,
    "slow_weights_in_meta_test": True,
}


# The criterion that has the setting.
CRITERIA: dict[str, Any] = {
    "criterion.gamma": {"name": "equal", "rare_share": 0.9},
    "criterion.rare_share": {"name": "equal", "rare_share": 0.9},
    "criterion.tau": {"name": "adjusted"},
    "criterion.counts": {"name": "adjusted"},
    "criterion.zero_count": {"name": "adjusted"},
    "criterion.blend": {"name": "adjusted", "zero_count": "blend"},
}


@pytest.mark.parametrize("name", list(names(MetaLtdsConfig)))
def test_every_setting_changes_something(name: str) -> None:
    """No dead flags: each one changes a gradient or, for BatchNorm's statistics, a buffer."""

    def outcome(settings: dict[str, Any]) -> dict[str, Tensor]:
        backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.BatchNorm1d(4), nn.Softplus())
        clipped = {"inner_clip": "per_tensor", "inner_clip_norm": 0.04}
        base = clipped if name.startswith("inner_clip") else {}
        counts = np.pad(COUNTS, ((0, 0), (0, 9))) if name == "contrast_classes" else COUNTS  # classes to leave out
        method = make(counts, backbone, **MetaLtdsConfig.model_validate(merge(base, settings)).model_dump())
        found = gradient(method, steps=2)
        return found | {n: b.double() for n, b in method.named_buffers() if "running" in n}

    base: dict[str, Any] = {
        "neighbours": 2,
        "temperature": 0.5,
        "strength": 10.0,
        "criterion": CRITERIA.get(name, "dc"),
    }
    path = name.split(".")
    change = {path[0]: {path[1]: CHANGES[name]}} if len(path) == 2 else {name: CHANGES[name]}
    before, after = outcome(base), outcome(merge(base, change))
    assert set(before) == set(after)
    assert max((before[n] - after[n]).abs().max().item() for n in before if before[n].numel()) > 1e-8


def test_an_open_class_is_trained_by_its_name_alone_and_not_when_hidden() -> None:
    """With `hide_open_names`, the classifier row of an open class gets exactly no gradient."""
    assert gradient(make())["classifier.weight"][4].abs().max() > 1e-6
    hidden = gradient(make(hide_open_names=True))
    assert (hidden["classifier.weight"][4] == 0).all()
    assert hidden["classifier.bias"][4] == 0
    assert hidden["classifier.weight"][3].abs().max() > 0


def test_hidden_names_work_wherever_the_open_class_stands() -> None:
    """The same problem with its open class first: the same loss, and gradients whose rows have moved along."""
    last = make(hide_open_names=True)
    first = make(np.roll(COUNTS, 1, axis=1), vectors=drawn_vectors(5, 3).roll(1, 0), hide_open_names=True)
    rows = ("classifier.weight", "classifier.bias")
    first.load_state_dict({n: value.roll(1, 0) if n in rows else value for n, value in last.state_dict().items()})
    batch = make_batch()
    one, two = last.loss(batch, LATE), first.loss(replace(batch, labels=(batch.labels + 1) % 5), LATE)
    assert one.terms.keys() == two.terms.keys()
    for name, value in one.terms.items():
        assert_close(two.terms[name], value, rtol=0, atol=1e-12, msg=name)
    one.total.backward()
    two.total.backward()
    for (name, mine), theirs in zip(last.named_parameters(), first.parameters(), strict=True):
        wanted = mine.grad.roll(1, 0) if name in rows else mine.grad
        assert_close(theirs.grad, wanted, rtol=0, atol=1e-12, msg=name)
    assert (first.classifier.weight.grad[0] == 0).all(), "the open class is hidden"
    assert_close(first.prototypes.value, last.prototypes.value.roll(1, 1), rtol=0, atol=1e-12)
    sigma, moved = last.augmentation.covariance.sigma, first.augmentation.covariance.sigma
    assert_close(moved, sigma.roll(1, 0), rtol=0, atol=1e-12)


def test_hidden_names_need_no_embedding_of_open_classes() -> None:
    task = make().task
    known = ClassEmbeddings(task.classes[:4], torch.randn(4, 3))
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    problem = Problem(task=task, embeddings=known, backbone=backbone, feature_dim=4)
    assert MetaLtds(MetaLtdsConfig(hide_open_names=True, neighbours=2), problem).semantics.vectors.shape == (4, 3)
    with pytest.raises(DataError, match="c4"):
        MetaLtds(MetaLtdsConfig(neighbours=2), problem)


def test_all_that_is_learned_is_saved_and_facts_are_not() -> None:
    state = make().state_dict()
    covariance = {f"augmentation.covariance.{name}" for name in ("count", "mean", "sigma")}
    assert {"prototypes.value", "prototypes.present", *covariance} <= set(state)
    assert {name for name in state if name.startswith(("semantics.", "augmentation."))} == covariance


def test_only_meta_train_moves_prototypes_and_covariances() -> None:
    method = make()
    train, test = method._split(LATE)
    method.loss(make_batch(), LATE)
    assert method.prototypes.present[train].any(1).all()
    assert not method.prototypes.present[test].any()
    assert method.augmentation.covariance.count.sum() == 6 * len(train)


def test_every_source_has_its_turn_in_meta_test() -> None:
    method = make()
    turns = [method._split(Clock(0, step, 100, 1)) for step in range(60)]
    assert all(sorted(train + test) == [0, 1, 2, 3] and len(test) == 1 for train, test in turns)
    share = np.bincount([test[0] for _, test in turns], minlength=4)
    assert share.min() >= 5


def test_too_many_meta_test_domains_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"less than the 4 source domains, but got 4"):
        make(meta_test_domains=4)


def test_edges_work(toy: Manifest) -> None:
    """Two classes; one source with a single class; one source left for meta-train; a class in no source."""
    for counts in (np.array([[3, 2], [4, 1]]), np.array([[3, 0, 0], [4, 1, 0], [2, 2, 0]])):
        for order in ("first", "second"):
            found = gradient(make(counts, gradient_order=order, neighbours=1))
            assert all(torch.isfinite(value).all() for value in found.values())


def test_any_module_is_a_backbone() -> None:
    """Dropout, LayerNorm, a module used twice: nothing has to be written for meta-learning."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.twice = nn.Linear(12, 12)
            self.rest = nn.Sequential(nn.LayerNorm(12), nn.Dropout(0.2), nn.Linear(12, 4), nn.Softplus())

        def forward(self, x: Tensor) -> Tensor:
            return self.rest(self.twice(torch.tanh(self.twice(x.flatten(1)))))

    for order in ("first", "second"):
        found = gradient(make(backbone=Odd(), gradient_order=order))
        assert found["backbone.twice.weight"].abs().max() > 0


# docs/paper-notes.md: row -> setting, as printed, as released. Rows that both leave at our default are not here.
ROWS = {
    1: ("gradient_order", "second", "first"),
    3: ("strength", 5.0, 10.0),
    5: ("calibrated_augmentation", False, True),
    6: ("s2s_negatives", "paper", "released"),
    8: ("align_to_semantics", True, False),
    9: ("s2z_weights", (1.0, 1.0), (0.5, 0.5)),
    10: ("cycle_form", "s2s", "z2s"),
    12: ("prototype_start", "first_visit", "zero"),
    13: ("prototype_epsilon", 0.0, 1e-5),
    16: ("covariance_pseudo_sample", False, True),
    17: ("neighbour_weights", "class_count", "running"),
    18: ("covariance", "full", "diagonal"),
    20: ("covariance_order", "together", "interleaved"),
    21: ("slow_weights_in_meta_test", False, True),
}


def test_presets_are_the_columns_of_the_table_of_readings() -> None:
    defaults = MetaLtdsConfig()
    for column, name in ((1, "ltds-paper"), (2, "ltds-code")):
        config = MetaLtdsConfig(**METHODS[name].settings)
        for row, reading in ROWS.items():
            assert getattr(config, reading[0]) == reading[column], (name, row)
        told = {reading[0] for reading in ROWS.values()} | {"strength_schedule"}
        others = set(MetaLtdsConfig.model_fields) - told
        assert all(getattr(config, field) == getattr(defaults, field) for field in others), name
    assert MetaLtdsConfig(**METHODS["ltds-paper"].settings).strength_schedule == "constant"
    assert find_method("ltds-j").settings == {}


def test_the_released_slips_follow_the_order_of_the_draw() -> None:
    """The first domain of a pair has its cross negatives counted twice; the first drawn does not see the others."""
    found = []
    for order in ([0, 1, 2], [2, 1, 0]):
        method = make(**METHODS["ltds-code"].settings)
        method._split = lambda clock, order=order: (order, [3])  # type: ignore[method-assign]
        found.append(method.loss(make_batch(), LATE).terms)
    assert found[0]["cls"] == pytest.approx(found[1]["cls"].item())
    assert abs(found[0]["s2s"] - found[1]["s2s"]) > 1e-6
    assert abs(found[0]["aug"] - found[1]["aug"]) > 1e-6


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"meta_test_domains": 0, "gradient_order": "second"}, "gradient_order has no effect"),
        ({"weights": {"augmentation": 0.0}, "strength": 3.0}, "strength has no effect"),
        ({"weights": {"s2z": 0.0}, "cycle_form": "z2s"}, "cycle_form has no effect"),
        ({"inner_clip_norm": 1.0}, "inner_clip_norm has no effect"),
        ({"neighbours": 1, "neighbour_weights": "none"}, "neighbour_weights has no effect"),
        ({"weights": {"z2s": 0.0}, "calibrated_z2s": False}, "calibrated_z2s has no effect"),
        ({"weights": {"z2s": 0.0, "s2s": 0.0, "s2z": 0.0}, "margin": 0.2}, "margin has no effect"),
        (
            {"weights": {"z2s": 0.0, "s2s": 0.0, "s2z": 0.0, "augmentation": 0.0}, "hide_open_names": True},
            "hide_open_names has no effect",
        ),
        ({"weights": {"meta_test": 0.0}}, "set meta_test_domains=0"),
        ({"meta_test_domains": 0, "slow_weights_in_meta_test": True}, "slow_weights_in_meta_test has no effect"),
        ({"weights": {"s2s": 0.0}, "align_to_semantics": False}, "align_to_semantics has no effect"),
        ({"weights": {"s2s": 0.0, "s2z": 0.0}, "contrast_classes": 9}, "contrast_classes has no effect"),
    ],
)
def test_a_setting_without_effect_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(MetaLtdsConfig, settings)


def test_settings_of_prototypes_need_a_loss_that_uses_them() -> None:
    only_z2s = {"weights": {"s2s": 0.0, "s2z": 0.0}, "prototype_momentum": 0.9}
    assert parse(MetaLtdsConfig, only_z2s).prototype_momentum == 0.9
    no_semantics = {"weights": {"z2s": 0.0, "s2s": 0.0, "s2z": 0.0}, "prototype_momentum": 0.9}
    for settings in ({**only_z2s, "meta_test_domains": 0}, no_semantics):
        with pytest.raises(ConfigError, match="prototype_momentum has no effect without a loss that uses prototypes"):
            parse(MetaLtdsConfig, settings)


def test_frozen_parameters_stay_and_the_rest_learns() -> None:
    method = make()
    method.backbone[1].weight.requires_grad_(False)
    found = gradient(method)
    assert (found["backbone.1.weight"] == 0).all()
    assert found["backbone.1.bias"].abs().max() > 0


def test_few_classes_need_few_neighbours_only_with_augmentation() -> None:
    counts = COUNTS[:, :3]
    with pytest.raises(ConfigError, match=r"Set method\.neighbours=3"):
        make(counts, neighbours=5)
    assert make(counts, neighbours=5, weights=LtdsWeights(augmentation=0.0)) is not None


def test_hidden_names_hide_open_classes_from_the_scaling_of_attributes(toy: Manifest) -> None:
    sessions = [toy_session(toy, "ltds", method={"hide_open_names": hide}) for hide in (False, True)]
    known, hidden = (session.method.semantics.vectors for session in sessions)
    assert known.shape == (6, 4)
    assert hidden.shape == (5, 4)
    assert not torch.allclose(known[:5], hidden)


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.method is MetaLtds])
def test_embeddings_are_asked_for_where_they_are_used(name: str) -> None:
    """Ablations a to d and mldg know nothing of names; what needs them says so when it gets none."""
    task, backbone = make().task, nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    config = parse(MetaLtdsConfig, METHODS[name].settings)
    problem = Problem(task=task, backbone=backbone, feature_dim=4)
    if name in ("ltds-a", "ltds-b", "ltds-c", "ltds-d", "mldg", "mldg-scratch"):
        assert not MetaLtds.uses_embeddings(config)
        method = MetaLtds(config, problem).double().train()
        assert method.semantics.vectors.shape == (5, 0)
        assert all(torch.isfinite(value).all() for value in gradient(method).values())
        return
    assert MetaLtds.uses_embeddings(config)
    with pytest.raises(ConfigError, match="Expected class embeddings for these settings, but got none"):
        MetaLtds(config, problem)


def test_a_method_without_names_does_what_it_did_with_them() -> None:
    none = LtdsWeights(z2s=0.0, s2s=0.0, s2z=0.0, augmentation=0.0)
    with_names = make(weights=none, neighbours=5, temperature=1 / 30)
    without = make(weights=none, neighbours=5, temperature=1 / 30)
    problem = Problem(task=without.task, backbone=without.backbone, feature_dim=4)
    without.semantics = ClassSemantics(without.config, problem, without.augmentation.log_n)
    for name, value in gradient(with_names).items():
        assert_close(gradient(without)[name], value, rtol=0, atol=0)


def test_methods_that_need_embeddings_say_so(toy: Manifest) -> None:
    with pytest.raises(ConfigError, match=r"Expected \[semantics\] only for a method that uses it, but 'agg' does not"):
        toy_session(toy, "agg", semantics={"table": "x.csv"})
    session = toy_session(toy, "ltds")
    assert session.method.semantics.vectors.shape == (6, 4)
