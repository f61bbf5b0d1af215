"""DAML: the worked example, a whole step against its slow twin, the warm-up, and who gets gradient from what."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ltds.core.config import parse
from ltds.core.distributions import dirichlet
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.methods import daml
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.daml import Daml, DamlConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import domain_networks_reference as twin
from toy import toy_session

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = np.array([[30, 5, 2], [2, 9, 4], [1, 8, 20]])
CLOCK = Clock(seed=0, step=3, total=100, steps_per_epoch=10)
WARMUP = Clock(seed=0, step=3, total=40, steps_per_epoch=10, phase="warmup")
SIZE = 4


def make(counts: np.ndarray = COUNTS, feature_dim: int = 4, backbone: nn.Module | None = None, **settings: Any) -> Daml:
    """Float64, linear networks on three numbers, a source for each row of counts."""
    task = make_task(counts)
    torch.manual_seed(4)
    backbone = backbone or nn.Linear(3, feature_dim, bias=False)
    torch.set_default_dtype(torch.float64)  # so that draws and log n are exact too
    try:
        method = Daml(parse(DamlConfig, settings), Problem(task=task, backbone=backbone, feature_dim=feature_dim))
    finally:
        torch.set_default_dtype(torch.float32)
    return method.double().train()


def make_task(counts: np.ndarray = COUNTS) -> Task:
    domains = tuple(f"d{i}" for i in range(len(counts) + 1))
    return Task("t", tuple(f"c{i}" for i in range(counts.shape[1])), domains, domains[-1], counts)


def make_batch(counts: np.ndarray = COUNTS, size: int = 2 * SIZE, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.choice(np.flatnonzero(row), size) for row in counts])
    domains = torch.arange(len(counts)).repeat_interleave(size)
    images = torch.as_tensor(rng.normal(size=(len(labels), 3)))
    return Batch(images, torch.tensor(labels), domains, torch.arange(len(labels)))


@pytest.fixture
def exact_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dirichlet shares in float64: in float32 they would not be what the twin is told to a part in 10^9."""

    def exact(alpha: Any, n: int, generator: torch.Generator) -> Tensor:
        torch.set_default_dtype(torch.float64)
        try:
            return dirichlet(alpha, n, generator)
        finally:
            torch.set_default_dtype(torch.float32)

    monkeypatch.setattr(daml, "dirichlet", exact)


def twin_case(batch: Batch, **weights: float) -> dict[str, Any]:
    """What the twin must know of a step: the images of each half, and what is drawn at the step's addresses."""
    halves = batch.split(2)
    case: dict[str, Any] = {"K": 3, "P": 3, "D": 4, "C": 3, "T": 2.0, "inner_lr": 0.3} | weights
    case["x"] = [[half.of(n).images.tolist() for n in range(3)] for half in halves]
    case["y"] = [[half.of(n).labels.tolist() for n in range(3)] for half in halves]
    case["r_teachers"] = [daml.dirichlet([1, 1], SIZE, CLOCK.generator(f"teachers/{n}")).tolist() for n in range(3)]
    case["picks"], case["r_mix"] = [], []
    for stream, own, others in (("mix", 0.6, 0.2), ("meta_mix", 0.2, 0.6)):
        picks, shares = [], []
        for n in range(3):
            generator = CLOCK.generator(f"{stream}/{n}")
            picks.append([torch.randperm(SIZE, generator=generator).tolist() for _ in range(3)])
            alpha = [own if m == n else others for m in range(3)]
            shares.append(daml.dirichlet(alpha, SIZE, generator).tolist())
        case["picks"].append(picks)
        case["r_mix"].append(shares)
    return case


def flat(method: Daml) -> list[nn.Parameter]:
    networks = [(method.backbone, method.classifier), *((n.backbone, n.classifier) for n in method.other_networks)]
    return [p for f, h in networks for p in (f.weight, h.weight, h.bias)]


def test_with_joint_forward_every_network_sees_all_domains_at_once() -> None:
    means = {}
    for joint in (False, True):
        backbone = nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4, momentum=1.0))
        method, batch = make(backbone=backbone, joint_forward=joint, inner_lr=0.0), make_batch()
        method.loss(batch, CLOCK)
        images = batch.split(2)[1]  # the last that it saw
        shown = images.images if joint else images.of(2).images
        for network in (method.backbone, *(n.backbone for n in method.other_networks)):
            assert_close(network[1].running_mean, network[0](shown).mean(dim=0))
        means[joint] = method.backbone[1].running_mean
    assert not torch.allclose(means[False], means[True])


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("order", ["first", "second"])
def test_a_whole_step_is_that_of_the_slow_twin(order: str, joint: bool, exact_draws: None) -> None:
    """Without BatchNorm it is the same in one pass for all domains."""
    names = {"mix": "w1", "distillation": "w2", "meta_classification": "w3", "meta_mix": "w4"}
    weights = dict(zip(names, (3.0, 1.5, 0.8, 2.0), strict=True))
    method, batch = make(gradient_order=order, inner_lr=0.3, weights=weights, joint_forward=joint), make_batch()
    case = twin_case(batch, **{names[name]: value for name, value in weights.items()})
    theta = torch.cat([p.detach().flatten() for p in flat(method)]).numpy()
    total, gradient = twin.daml_first_order(theta, case)
    step = method.loss(batch, CLOCK)
    step.total.backward()
    mine = torch.cat([p.grad.flatten() for p in flat(method)])
    assert float(step.total.detach()) == pytest.approx(total, rel=1e-12)
    if order == "first":
        assert_close(mine, torch.as_tensor(gradient), rtol=1e-9, atol=1e-12)
        return
    direction = np.random.default_rng(1).normal(size=len(theta))
    along = twin.daml_second_order(theta, case, direction)
    assert float(mine @ torch.as_tensor(direction)) == pytest.approx(along, rel=1e-7)
    assert abs(float(mine @ torch.as_tensor(direction)) - gradient @ direction) > 1e-3 * abs(along)


def test_the_worked_example_of_mixed_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three domains of one image each; f is the identity, so that the images are the features of the example."""
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not beside this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["daml"]
    given, wanted = example["inputs"], example["expected"]
    shares = torch.tensor([given["dirichlet_mix"]], dtype=torch.float64)
    alphas: list[list[float]] = []
    monkeypatch.setattr(daml, "dirichlet", lambda alpha, n, generator: alphas.append(list(alpha)) or shares)
    method = make(feature_dim=2, backbone=nn.Identity(), weights={"distillation": 0.0, "meta_classification": 0.0})
    with torch.no_grad():
        for head in (method.classifier, *(network.classifier for network in method.other_networks)):
            head.weight.copy_(torch.tensor(given["head_W"]))
            head.bias.zero_()
    images = torch.tensor(given["features_one_per_domain"], dtype=torch.float64).repeat_interleave(2, dim=0)
    labels = torch.tensor(given["labels_one_per_domain"]).repeat_interleave(2)
    batch = Batch(images, labels, torch.arange(3).repeat_interleave(2), torch.arange(6))
    step = method.loss(batch, CLOCK)
    assert float(step.terms["mix"]) == pytest.approx(3 * wanted["dir_mix_loss"], abs=1e-6)  # each network the same
    assert alphas[:3] == [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    assert alphas[3:] == [[0.2, 0.6, 0.6], [0.6, 0.2, 0.6], [0.6, 0.6, 0.2]]
    for alpha, name in ((alphas[0], "meta_train_own_0.6_others_0.2"), (alphas[3], "meta_objective_own_0.2_others_0.6")):
        means = dirichlet(alpha, 20_000, CLOCK.generator("means")).mean(dim=0)
        assert means.tolist() == pytest.approx(wanted[f"dirichlet_mean_{name}"], abs=0.01)


def test_every_network_sees_every_domain_once_in_each_half() -> None:
    method, batch = make(), make_batch()
    halves, seen = batch.split(2), []
    images = {half.of(n).images[0, 0].item(): (k, n) for k, half in enumerate(halves) for n in range(3)}
    backbones = [method.backbone, *(network.backbone for network in method.other_networks)]
    for m, backbone in enumerate(backbones):
        backbone.register_forward_hook(lambda f, args, out, m=m: seen.append((m, *images[args[0][0, 0].item()])))
    method.loss(batch, CLOCK)
    assert sorted(seen) == [(m, k, n) for m in range(3) for k in range(2) for n in range(3)]


def test_the_meta_objective_reads_images_that_meta_train_did_not_see() -> None:
    method, batch = make(), make_batch()
    later = batch.split(2)[1].rows
    changed = batch.images.clone()
    changed[later] += 1
    one = method.loss(batch, CLOCK).terms
    other = method.loss(Batch(changed, batch.labels, batch.domains, batch.rows), CLOCK).terms
    for name in ("classification", "distillation", "mix"):
        assert torch.equal(one[name], other[name])
    for name in ("meta_classification", "meta_mix"):
        assert not torch.equal(one[name], other[name])


def test_teachers_get_no_gradient_from_distillation() -> None:
    """A network's gradient from meta-train is that of its own terms: it does not depend on what it teaches."""
    weights = {"mix": 0.0, "meta_mix": 0.0, "meta_classification": 1e-300}
    method, batch = make(weights=weights | {"distillation": 1.0}), make_batch()
    logits: list[Tensor] = []
    for network in method.other_networks:
        network.classifier.register_forward_hook(lambda h, args, out: logits.append(out))
    method.loss(batch, CLOCK)
    taught = [z.requires_grad for z in logits[: 2 + 2 * 2]]  # their own logits, then what they teach two others
    assert taught == [True, True, False, False, False, False]


def test_prediction_is_the_mean_of_probabilities() -> None:
    method, images = make().eval(), make_batch().images
    prediction = method.predict(images)
    heads = [(method.backbone, method.classifier), *((n.backbone, n.classifier) for n in method.other_networks)]
    mean = torch.stack([torch.softmax(h(f(images)), dim=1) for f, h in heads]).mean(dim=0)
    assert_close(torch.softmax(prediction.logits, dim=1), mean)
    assert_close(prediction.logits, mean.log())
    assert_close(prediction.features, torch.cat([f(images) for f, _ in heads], dim=1))
    averaged_logits = torch.stack([h(f(images)) for f, h in heads]).mean(dim=0)
    assert not torch.allclose(torch.softmax(averaged_logits, dim=1), mean)


def test_the_warm_up_is_agg_on_one_batch(toy: Manifest) -> None:
    method, batch = make(warmup=0.4), make_batch()
    agg = Agg(AggConfig(), Problem(task=make_task(), backbone=method.backbone, feature_dim=4))
    agg.classifier = method.classifier
    step = method.loss(batch, WARMUP)
    assert_close(step.total, agg.double().loss(batch.split(2)[0], WARMUP).total)
    step.total.backward()
    assert all(p.grad is None for p in method.other_networks.parameters())
    assert method.backbone.weight.grad is not None
    assert torch.equal(method.predict(batch.images).features, method.backbone(batch.images))


@pytest.mark.parametrize("sources", [3, 4])
def test_after_the_warm_up_all_networks_are_one(sources: int, exact_draws: None) -> None:
    counts = np.vstack([COUNTS, COUNTS[:1]])[:sources]
    method, batch = make(counts, warmup=0.4), make_batch(counts)
    before = method.eval().predict(batch.images)
    method.train().start_phase(method.phases()[1])
    after = method.eval().predict(batch.images)
    assert torch.equal(after.logits, before.logits)  # bit for bit, for any number of networks
    assert torch.equal(after.features, before.features.repeat(1, sources))
    terms = method.train().loss(batch, CLOCK).terms
    assert abs(float(terms["distillation"])) < 1e-12
    assert float(terms["classification"]) > 0.5
    state = {name: value.clone() for name, value in method.state_dict().items()}
    method.start_phase(method.phases()[1])
    assert all(torch.equal(state[name], value) for name, value in method.state_dict().items())


def test_copies_share_no_memory_and_have_the_running_statistics_too(toy: Manifest) -> None:
    session = toy_session(toy, "daml-warmup")
    method = session.method.train()
    method.loss(session.batch(0), Clock(0, 0, 2, 2, "warmup"))
    assert method.backbone.body[1].running_mean.abs().sum() > 0
    method.start_phase(method.phases()[1])
    other = method.other_networks[0].backbone
    assert torch.equal(other.body[1].running_mean, method.backbone.body[1].running_mean)
    assert other.body[0].weight.data_ptr() != method.backbone.body[0].weight.data_ptr()
    method.loss(session.batch(1), Clock(0, 0, 4, 2)).total.backward()
    grads = [method.backbone.body[0].weight.grad, other.body[0].weight.grad]
    assert not torch.equal(*grads)


def test_phases() -> None:
    assert [p.name for p in make().phases()] == ["main"]
    first, second = make(warmup=0.25, lr_scale_after_warmup=0.5).phases()
    assert (first.name, first.share, first.lr_scale, first.decay) == ("warmup", 0.25, 1.0, "constant")
    assert first.trainable == ("backbone.", "classifier.")
    assert (second.name, second.share, second.lr_scale, second.decay) == ("main", 0.75, 0.5, "constant")
    said = DamlConfig.model_fields["lr_scale_after_warmup"].description or ""
    assert "schedule.decay, milestones and gamma have no effect" in said, "`ltds methods daml-warmup` says it"
    assert METHODS["daml-warmup"].settings == {"warmup": 0.4}
    assert METHODS["daml"].settings == {"only_known_classes": True}
    assert METHODS["daml-scratch"].settings == {}


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("criterion", ["ce", "dc"])
def test_a_class_without_images_has_no_output(at: int, criterion: str) -> None:
    """As if there were no such class: the same terms and gradients, wherever it stands; its own rows get none."""
    counts = np.insert(COUNTS, at, 0, axis=1)
    small, large = make(criterion=criterion), make(counts, criterion=criterion, only_known_classes=True)
    known = [c for c in range(4) if c != at]

    def rows(name: str) -> bool:
        return "classifier" in name

    state = {}
    for name, value in small.state_dict().items():
        state[name] = large.state_dict()[name].index_copy(0, torch.tensor(known), value) if rows(name) else value
    large.load_state_dict(state)
    batch = make_batch()
    one, two = small.loss(batch, CLOCK), large.loss(replace(batch, labels=torch.tensor(known)[batch.labels]), CLOCK)
    for name, value in one.terms.items():
        torch.testing.assert_close(two.terms[name], value, rtol=0, atol=1e-12, msg=name)
    one.total.backward()
    two.total.backward()
    for (name, mine), theirs in zip(small.named_parameters(), large.parameters(), strict=True):
        got = theirs.grad[known] if rows(name) else theirs.grad
        torch.testing.assert_close(got, mine.grad, rtol=0, atol=1e-12, msg=name)
        assert not rows(name) or (theirs.grad[at] == 0).all()
    logits = large.predict(batch.images).logits
    torch.testing.assert_close(logits[:, known], small.predict(batch.images).logits, rtol=0, atol=1e-12)
    assert (logits[:, at] == -torch.inf).all()


def test_networks_begin_different_and_count(toy: Manifest) -> None:
    method = toy_session(toy, "daml").method
    assert not torch.equal(method.backbone.body[0].weight, method.other_networks[0].backbone.body[0].weight)
    one = sum(p.numel() for p in [*method.backbone.parameters(), *method.classifier.parameters()])
    assert sum(p.numel() for p in method.parameters()) == 2 * one
    assert method.batches_per_step == 2


@pytest.mark.parametrize("criterion", ["bsce", "dc", "equal", "adjusted"])
def test_any_criterion_will_do(criterion: str) -> None:
    counts = np.array([[300, 50, 1], [200, 90, 0], [100, 80, 1]])
    step = make(counts, criterion=criterion).loss(make_batch(counts), CLOCK)
    plain = make(counts).loss(make_batch(counts), CLOCK)
    assert torch.isfinite(step.total)
    assert float(step.total.detach()) != float(plain.total.detach())
    assert torch.equal(step.terms["distillation"], plain.terms["distillation"])


def test_bad_settings(toy: Manifest) -> None:
    with pytest.raises(ConfigError, match="cannot both be 0"):
        parse(DamlConfig, {"weights": {"meta_classification": 0.0, "meta_mix": 0.0}})
    for idle in (
        {"lr_scale_after_warmup": 0.5},
        {"temperature": 4.0, "weights": {"distillation": 0.0}},
        {"own_concentration": 0.5, "weights": {"mix": 0.0, "meta_mix": 0.0}},
    ):
        with pytest.raises(ConfigError, match="has no effect"):
            parse(DamlConfig, idle)
    with pytest.raises(ConfigError):
        parse(DamlConfig, {"warmup": 1.0})
    for weights in ({"mix": 0.0}, {"meta_mix": 0.0}):  # one mixture is left that uses it
        assert parse(DamlConfig, {"own_concentration": 0.5, "weights": weights}).own_concentration == 0.5
    with pytest.raises(ConfigError, match=r"at least 2 source domains for Daml .* has 1 \("):
        make(COUNTS[:1])
