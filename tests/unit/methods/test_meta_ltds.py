"""The paper's method as a whole: against the slow twin of Algorithm 1, against its ablations, setting by setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ltds.core.config import merge, names
from ltds.core.errors import ConfigError, DataError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.methods.meta_ltds import MetaLtds, MetaLtdsConfig, Weights
from ltds.methods.presets import PRESETS, find_preset
from ltds.semantics.embeddings import ClassEmbeddings
from reference import algorithm
from toy import toy_session

LATE = Clock(seed=0, step=90, total=100, steps_per_epoch=1)
EARLY = Clock(seed=0, step=0, total=100, steps_per_epoch=1)
COUNTS = np.array([[30, 5, 0, 2, 0], [2, 9, 4, 0, 0], [1, 8, 20, 0, 0], [3, 0, 6, 7, 0]])


def make(
    counts: np.ndarray = COUNTS, backbone: nn.Module | None = None, features: int = 4, **settings: Any
) -> MetaLtds:
    """Float64, five classes of which the last is open, four source domains."""
    classes = tuple(f"c{i}" for i in range(counts.shape[1]))
    domains = tuple(f"d{i}" for i in range(len(counts) + 1))
    generator = torch.Generator().manual_seed(5)
    embeddings = ClassEmbeddings(classes, torch.randn(len(classes), 3, generator=generator))
    torch.manual_seed(4)
    config = MetaLtdsConfig(**{"neighbours": 2, "temperature": 0.5} | settings)
    backbone = backbone or nn.Sequential(nn.Flatten(), nn.Linear(12, features), nn.Softplus())
    task = Task("t", classes, domains, domains[-1], counts)
    torch.set_default_dtype(torch.float64)  # so that log n is exact too
    try:
        method = MetaLtds(config, task=task, embeddings=embeddings, backbone=backbone, features=features)
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


TWIN = {"backbone.": "f.", "classifier.": "h.", "to_semantic.": "e.", "to_visual.": "d."}


def twin_case(order: str) -> tuple[MetaLtds, Batch, dict[str, Any]]:
    """A linear model of the twin's shapes, and what the twin needs to know of the step that the method takes."""
    counts = np.array([[30, 5, 0], [2, 9, 4], [1, 8, 20]])
    torch.manual_seed(3)
    method = make(
        counts,
        nn.Linear(algorithm.P, algorithm.D, bias=False),
        algorithm.D,
        order=order,
        strength=2.0,
        strength_schedule="constant",
        covariance_start=0.0,
        weights=Weights(z2s=0.1, s2s=0.2, s2z=0.15, augmentation=0.1),
    )
    generator = torch.Generator().manual_seed(8)
    method.semantics = torch.nn.functional.normalize(torch.randn(3, algorithm.S, generator=generator).double())
    if order == "second":  # a smooth network, so that differences exist
        method.to_semantic = smooth(algorithm.D, algorithm.S)
        method.to_visual = smooth(algorithm.S, algorithm.D)
    else:
        torch.manual_seed(9)
        method.to_semantic = type(method.to_semantic)(algorithm.D, algorithm.S).double()
        method.to_visual = type(method.to_visual)(algorithm.S, algorithm.D).double()
    for projector in (method.to_semantic, method.to_visual):
        nn.init.uniform_(projector[1].weight, 0.5, 1.5)
        nn.init.uniform_(projector[1].bias, 0.3, 1.0)
    rng = np.random.default_rng(0)
    labels = [[0, 1, 1, 0], [2, 0, 1, 2], [0, 2, 1, 1]]
    x = rng.normal(size=(3, 4, algorithm.P))
    batch = Batch(
        torch.as_tensor(x.reshape(12, -1)),
        torch.tensor(labels).flatten(),
        torch.arange(3).repeat_interleave(4),
        torch.arange(12),
    )
    train, test = method._split(LATE)
    relu = lambda v: v if v.real > 0 else 0.0 * v  # noqa: E731
    case = {
        "mtr": tuple(train),
        "mte": tuple(test),
        "batches": [{"x": x[d], "y": labels[d]} for d in range(3)],
        "n": counts.astype(float).tolist(),
        "s": method.semantics.numpy(),
        "strength": 2.0,
        "v": np.zeros((3, 3, algorithm.D)),
        "present": [[False] * 3] * 3,
        "alpha": 0.1,
        "tau": 0.5,
        "w": (0.1, 0.2, 0.15, 0.1),
        "beta1": 0.2,
        "w_mte": 0.3,
        "activation": relu if order == "first" else (lambda v: np.log(1 + np.exp(v))),
    }
    return method, batch, case


def smooth(inputs: int, outputs: int) -> nn.Sequential:
    torch.manual_seed(9)
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.Softplus()).double()


def flat(method: MetaLtds, values: dict[str, Tensor]) -> np.ndarray:
    renamed = {}
    for name, value in values.items():
        for ours, theirs in TWIN.items():
            if name.startswith(ours):
                renamed[theirs + name.removeprefix(ours)] = value.detach().numpy().ravel()
    assert set(renamed) == set(algorithm.SHAPES)
    return np.concatenate([renamed[name] for name in algorithm.SHAPES])


def test_one_step_is_algorithm_1_in_first_order() -> None:
    method, batch, case = twin_case("first")
    loss = method.loss(batch, LATE)
    loss.total.backward()
    case["sigma"] = method._borrowed().numpy()
    theta = flat(method, dict(method.named_parameters()))
    wanted = algorithm.first_order(theta, case)
    got = flat(method, {n: p.grad for n, p in method.named_parameters()})
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)
    assert np.abs(wanted).max() > 0.01
    train, views = algorithm.meta_train(theta, case)
    fast = theta - 0.2 * algorithm.complex_gradient(lambda t: algorithm.meta_train(t, case)[0], theta)
    assert loss.total.item() == pytest.approx(float(train + 0.3 * algorithm.meta_test(fast, case, views)), abs=1e-10)


def test_one_step_is_algorithm_1_in_second_order() -> None:
    """METHODS 5 (i): the gradient is the numerical derivative of the total loss."""
    method, batch, case = twin_case("second")
    method.loss(batch, LATE).total.backward()
    case["sigma"] = method._borrowed().numpy()
    theta = flat(method, dict(method.named_parameters()))
    got = flat(method, {n: p.grad for n, p in method.named_parameters()})
    for seed in range(4):
        direction = np.random.default_rng(seed).normal(size=len(theta))
        assert got @ direction == pytest.approx(algorithm.second_order(theta, case, direction, h=2e-7), abs=1e-6)


def test_the_orders_differ_and_agree_without_an_inner_step() -> None:
    first, second = gradient(make()), gradient(make(order="second"))
    assert max((first[n] - second[n]).abs().max() for n in first) > 1e-5
    first, second = gradient(make(inner_lr=0.0)), gradient(make(inner_lr=0.0, order="second"))
    for name in first:
        assert_close(first[name], second[name], rtol=0, atol=1e-12)


def test_ablations_a_and_b_are_agg_and_dc(toy: Manifest) -> None:
    """Equal counts, no terms, no meta-learning: plain training, METHODS 5 (iii)."""
    for ours, plain in (("ltds-a", "agg"), ("ltds-b", "dc")):
        one, other = toy_session(toy, ours), toy_session(toy, plain)
        other.method.load_state_dict(one.method.state_dict(), strict=False)
        batch = one.loader.batch(0)
        for session in (one, other):
            session.method.train().loss(batch, EARLY).total.backward()
        mine = dict(one.method.named_parameters())
        assert set(mine) == set(dict(other.method.named_parameters()))
        for name, parameter in other.method.named_parameters():
            assert_close(mine[name].grad, parameter.grad, rtol=1e-5, atol=1e-7)


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
        loss = session.method.train().loss(session.loader.batch(0), LATE)
        assert sorted(loss.terms) == sorted(["cls", *terms]), letter
        assert session.config.method.criterion == ("ce" if letter in "ac" else "dc")
    before = toy_session(toy, "ltds-j").method.train()
    assert "aug" not in before.loss(session.loader.batch(0), EARLY).terms


CHANGES: dict[str, Any] = {
    "criterion": "ce",
    "weights.z2s": 0.2,
    "weights.s2s": 0.2,
    "weights.s2z": 0.2,
    "weights.augmentation": 0.2,
    "weights.meta_test": 0.6,
    "margin": 0.3,
    "temperature": 0.4,
    "strict": True,
    "meta_test_domains": 2,
    "order": "second",
    "inner_lr": 0.1,
    "inner_clip": "global",
    "inner_clip_norm": 0.05,
    "meta_test_statistics": False,
    "joint_forward": True,
    "calibrated_z2s": False,
    "negatives": "released",
    "align_to_semantics": False,
    "back_weights": (0.5, 0.5),
    "cycle": "z2s",
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


@pytest.mark.parametrize("name", list(names(MetaLtdsConfig)))
def test_every_setting_changes_something(name: str) -> None:
    """No dead flags: each one changes a gradient or, for BatchNorm's statistics, a buffer."""

    def outcome(settings: dict[str, Any]) -> dict[str, Tensor]:
        backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.BatchNorm1d(4), nn.Softplus())
        clipping = {"inner_clip_norm": {"inner_clip": "per_tensor"}, "inner_clip": {"inner_clip_norm": 0.05}}
        base = clipping.get(name, {})
        method = make(backbone=backbone, **MetaLtdsConfig.model_validate(merge(base, settings)).model_dump())
        found = gradient(method, steps=2)
        return found | {n: b.double() for n, b in method.named_buffers() if "running" in n}

    base: dict[str, Any] = {"neighbours": 2, "temperature": 0.5, "strength": 10.0}
    path = name.split(".")
    change = {path[0]: {path[1]: CHANGES[name]}} if len(path) == 2 else {name: CHANGES[name]}
    before, after = outcome(base), outcome(merge(base, change))
    assert set(before) == set(after)
    assert max((before[n] - after[n]).abs().max().item() for n in before if before[n].numel()) > 1e-8


def test_an_open_class_is_trained_by_its_name_alone_and_not_when_strict() -> None:
    """METHODS 5 (iv): with `strict`, the classifier row of an open class gets exactly no gradient."""
    assert gradient(make())["classifier.weight"][4].abs().max() > 1e-6
    strict = gradient(make(strict=True))
    assert (strict["classifier.weight"][4] == 0).all()
    assert strict["classifier.bias"][4] == 0
    assert strict["classifier.weight"][3].abs().max() > 0


def test_strict_needs_no_embedding_of_open_classes() -> None:
    task = make().task
    known = ClassEmbeddings(task.classes[:4], torch.randn(4, 3))
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    build = {"task": task, "embeddings": known, "backbone": backbone, "features": 4}
    assert MetaLtds(MetaLtdsConfig(strict=True, neighbours=2), **build).semantics.shape == (4, 3)
    with pytest.raises(DataError, match="c4"):
        MetaLtds(MetaLtdsConfig(neighbours=2), **build)


def test_all_that_is_learned_is_saved_and_facts_are_not() -> None:
    state = make().state_dict()
    for name in ("prototypes.value", "prototypes.present", "spread.count", "spread.mean", "spread.sigma"):
        assert name in state
    assert not {"semantics", "named", "position", "similar", "class_sizes"} & set(state)


def test_only_meta_train_moves_prototypes_and_covariances() -> None:
    method = make()
    train, test = method._split(LATE)
    method.loss(make_batch(), LATE)
    assert method.prototypes.present[train].any(1).all()
    assert not method.prototypes.present[test].any()
    assert method.spread.count.sum() == 6 * len(train)


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
            found = gradient(make(counts, order=order, neighbours=1))
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
        found = gradient(make(backbone=Odd(), order=order))
        assert found["backbone.twice.weight"].abs().max() > 0


def test_presets_name_what_they_change() -> None:
    print_rows = set(PRESETS["ltds-paper"].settings)
    assert print_rows == {"order", "strength", "strength_schedule", "calibrated_augmentation", "covariance"}
    defaults = MetaLtdsConfig()
    for name, preset in PRESETS.items():
        if preset.method is MetaLtds and name not in ("ltds", "ltds-j"):
            assert MetaLtdsConfig(**preset.settings) != defaults, name
    assert find_preset("ltds-j").settings == {}


def test_methods_that_need_embeddings_say_so(toy: Manifest) -> None:
    with pytest.raises(ConfigError, match=r"Expected \[semantics\] only for a method that uses it, but 'agg' does not"):
        toy_session(toy, "agg", semantics={"table": "x.csv"})
    session = toy_session(toy, "ltds")
    assert session.method.semantics.shape == (6, 4)
