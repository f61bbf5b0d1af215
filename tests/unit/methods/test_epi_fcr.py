"""Epi-FCR: the worked example, a whole step against its slow twin, and who gets gradient from what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.methods.epi_fcr import EpiFcr, EpiFcrConfig, EpisodeWeights
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import domain_networks_reference as twin
from toy import toy_session

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
COUNTS = np.array([[30, 5, 2], [2, 9, 4], [1, 8, 20]])
EARLY = Clock(seed=0, step=15, total=100, steps_per_epoch=10)
LATE = Clock(seed=0, step=16, total=100, steps_per_epoch=10)


def make(
    counts: np.ndarray = COUNTS, feature_dim: int = 4, backbone: nn.Module | None = None, **settings: Any
) -> EpiFcr:
    """Float64, linear networks on three numbers, a source for each row of counts."""
    domains = tuple(f"d{i}" for i in range(len(counts) + 1))
    task = Task("t", tuple(f"c{i}" for i in range(counts.shape[1])), domains, domains[-1], counts)
    torch.manual_seed(4)
    backbone = backbone or nn.Linear(3, feature_dim, bias=False)
    torch.set_default_dtype(torch.float64)  # so that log n is exact too
    try:
        method = EpiFcr(parse(EpiFcrConfig, settings), Problem(task=task, backbone=backbone, feature_dim=feature_dim))
    finally:
        torch.set_default_dtype(torch.float32)
    return method.double().train()


def make_batch(counts: np.ndarray = COUNTS, size: int = 5, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.choice(np.flatnonzero(row), size) for row in counts])
    domains = torch.arange(len(counts)).repeat_interleave(size)
    images = torch.as_tensor(rng.normal(size=(len(labels), 3)))
    return Batch(images, torch.tensor(labels), domains, torch.arange(len(labels)))


def gradients(method: EpiFcr, clock: Clock = LATE) -> dict[str, Tensor | None]:
    method.zero_grad()
    method.loss(make_batch(), clock).total.backward()
    return {name: p.grad for name, p in method.named_parameters()}


class Scale(nn.Module):
    """The feature z = scale x."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


def test_the_worked_example() -> None:
    """Two domains that hold the same image, so that the sums over domains, halved, are its single terms."""
    if not FILE.is_file():
        pytest.skip(f"the shared fixtures are not beside this repository ({FILE.name})")
    example = json.loads(FILE.read_text())["examples"]["epi_fcr"]
    given, wanted = example["inputs"], example["expected"]
    w_f, w_c, w_r = given["weights_f_c_r"]
    counts, weights = np.array([[1, 1], [1, 1]]), {"feature": 2 * w_f, "classifier": 2 * w_c, "random": w_r}
    method = make(counts, 1, Scale(), weights=weights)
    pairs = [(method.classifier, "agg_classifier"), (method.random, "random_classifier")]
    pairs += [(network.classifier, "other_domain_classifier") for network in method.domain_networks]
    with torch.no_grad():
        method.backbone.scale.fill_(given["agg_feature_scale"])
        for network in method.domain_networks:
            network.backbone.scale.fill_(given["other_domain_feature_scale"])
        for head, name in pairs:
            head.weight.copy_(torch.tensor(given[name])[:, None])
            head.bias.zero_()
    image = torch.full((2, 1), given["x"], dtype=torch.float64)
    batch = Batch(image, torch.full((2,), given["label"]), torch.tensor([0, 1]), torch.arange(2))
    step = method.loss(batch, LATE)
    names = {"classification": "agg_ce", "feature": "epi_f", "classifier": "epi_c", "random": "epi_r"}
    for mine, theirs in names.items():
        assert float(step.terms[mine]) == pytest.approx(wanted[theirs], abs=1e-7), mine
    assert float(step.total.detach() - 2 * step.terms["domain_networks"]) == pytest.approx(wanted["total"], abs=1e-7)
    step.total.backward()
    assert float(method.backbone.scale.grad) == pytest.approx(wanted["d_total_d_agg_feature_scale"], abs=1e-7)
    assert method.classifier.weight.grad.flatten().tolist() == pytest.approx(
        wanted["d_total_d_agg_classifier"], abs=1e-7
    )
    assert method.random.weight.grad is None


@pytest.mark.parametrize("criterion", ["ce", "bsce"])
def test_a_whole_step_is_that_of_the_slow_twin(criterion: str) -> None:
    weights = {"feature": 2.0, "classifier": 0.7, "random": 0.3}
    method, batch = make(criterion=criterion, weights=weights), make_batch()
    v, t = torch.randperm(3, generator=LATE.generator("episode"))[:2].tolist()
    case = {
        "P": 3,
        "D": 4,
        "C": 3,
        "x": [batch.of(n).images.tolist() for n in range(3)],
        "y": [batch.of(n).labels.tolist() for n in range(3)],
        "n": COUNTS.sum(axis=0) if criterion == "bsce" else None,
        "random": (method.random.weight.tolist(), method.random.bias.tolist()),
        "v": v,
        "t": t,
        "w_f": 2.0,
        "w_c": 0.7,
        "w_r": 0.3,
    }
    networks = [(method.backbone, method.classifier), *((n.backbone, n.classifier) for n in method.domain_networks)]
    order = [p for f, h in networks for p in (f.weight, h.weight, h.bias)]
    theta = torch.cat([p.detach().flatten() for p in order]).numpy()
    total, gradient = twin.epi_step(theta, case)
    step = method.loss(batch, LATE)
    step.total.backward()
    assert float(step.total.detach()) == pytest.approx(total, rel=1e-12)
    mine = torch.cat([p.grad.flatten() for p in order])
    assert_close(mine, torch.as_tensor(gradient), rtol=1e-9, atol=1e-12)


def test_the_episode_leaves_no_gradient_on_the_partners() -> None:
    """The domain networks learn from their own cross-entropy alone: with episodes or without, the same gradient."""
    warm, late = gradients(make(), EARLY), gradients(make(), LATE)
    partners = [name for name in warm if name.startswith("domain_networks.")]
    assert len(partners) == 3 * 3
    for name in partners:
        assert torch.equal(warm[name], late[name]), name
    for name in ("backbone.weight", "classifier.weight", "classifier.bias"):
        assert not torch.equal(warm[name], late[name]), name
    assert late["random.weight"] is None
    assert late["random.bias"] is None


def test_a_domain_network_learns_from_its_own_domain_alone() -> None:
    method, batch = make(), make_batch()
    own = method.domain_networks[1]
    method.loss(batch, LATE).total.backward()
    mine = own.backbone.weight.grad.clone()
    method.zero_grad()
    alone = batch.of(1)
    nn.functional.cross_entropy(own(alone.images), alone.labels).backward()
    assert_close(mine, own.backbone.weight.grad)


def test_the_final_model_learns_nothing_from_the_domain_networks_own_loss() -> None:
    method = make()
    before = gradients(method, EARLY)["backbone.weight"].clone()
    with torch.no_grad():
        for network in method.domain_networks:
            network.classifier.weight.mul_(3)
    assert torch.equal(gradients(method, EARLY)["backbone.weight"], before)


def test_the_backbone_beside_another_classifier_and_the_classifier_beside_another_backbone() -> None:
    """w_f moves f alone, w_c moves h alone."""
    parts = [
        ("feature", "backbone.weight", "classifier.weight"),
        ("classifier", "classifier.weight", "backbone.weight"),
    ]
    plain = gradients(make(), EARLY)
    for name, moved, kept in parts:
        weights = {"feature": 0.0, "classifier": 0.0, "random": 0.0} | {name: 1.0}
        late = gradients(make(weights=weights), LATE)
        assert not torch.allclose(late[moved], plain[moved])
        assert_close(late[kept], plain[kept], rtol=0, atol=1e-15)


def test_domains_for_validation_and_training_always_differ() -> None:
    method, batch = make(), make_batch()
    images = {batch.of(n).images[0, 0].item(): n for n in range(3)}
    seen: list[tuple[int, int]] = []
    for t, network in enumerate(method.domain_networks):
        network.backbone.register_forward_hook(lambda m, args, out, t=t: seen.append((images[args[0][0, 0].item()], t)))
    for step in range(16, 80):
        method.loss(batch, Clock(0, step, 100, 10))
    passes = [seen[i : i + 4] for i in range(0, len(seen), 4)]
    assert all(own == [(0, 0), (1, 1), (2, 2)] for *own, _ in passes)
    met = {pair for *_, pair in passes}
    assert met == {(v, t) for v in range(3) for t in range(3) if v != t}


def test_the_warm_up_ends_after_its_share() -> None:
    assert set(make().loss(make_batch(), EARLY).terms) == {"domain_networks", "classification"}
    assert set(make().loss(make_batch(), LATE).terms) == {
        "domain_networks",
        "classification",
        "random",
        "feature",
        "classifier",
    }
    assert "feature" in make(warmup=0.0).loss(make_batch(), Clock(0, 0, 100, 10)).terms


@pytest.mark.parametrize("criterion", ["dc", "equal", "adjusted"])
def test_any_criterion_will_do(criterion: str) -> None:
    counts = np.array([[300, 50, 1], [200, 90, 0], [100, 80, 1]])
    step = make(counts, criterion=criterion).loss(make_batch(counts), LATE)
    plain = make(counts).loss(make_batch(counts), LATE)
    assert torch.isfinite(step.total)
    assert float(step.total.detach()) != float(plain.total.detach())


@pytest.mark.parametrize("clock", [EARLY, LATE])
def test_the_original_sums_over_domains(clock: Clock) -> None:
    """f and h get K times the gradient; the domain networks, whose loss is a sum anyway, get the same one."""
    mean, total = gradients(make(), clock), gradients(make(average_domains=False), clock)
    for name, gradient in mean.items():
        if gradient is None:
            assert total[name] is None
        else:
            factor = 1 if name.startswith("domain_networks") else 3
            torch.testing.assert_close(total[name], factor * gradient, rtol=1e-12, atol=1e-14, msg=name)


def test_networks_begin_different_and_the_random_classifier_never_moves(toy: Manifest) -> None:
    session = toy_session(toy, "epi-fcr", method={"name": "epi-fcr", "warmup": 0.0})
    method = session.method
    weights = [method.backbone, *(network.backbone for network in method.domain_networks)]
    first = [backbone.body[0].weight for backbone in weights]
    assert all(not torch.equal(a, b) for i, a in enumerate(first) for b in first[:i])
    before = method.random.weight.clone()
    method.loss(session.batch(0), Clock(0, 0, 6, 2)).total.backward()
    session.optimizer.step()
    assert torch.equal(method.random.weight, before)
    per_network = sum(p.numel() for p in [*method.backbone.parameters(), *method.classifier.parameters()])
    head = sum(p.numel() for p in method.classifier.parameters())
    assert sum(p.numel() for p in method.parameters()) == 3 * per_network + head


def test_bad_settings_and_presets(toy: Manifest) -> None:
    for bad in ({"warmup": 1.0}, {"weights": {"feature": 0.0, "classifier": 0.0, "random": 0.0}}):
        with pytest.raises(ConfigError, match="use the method agg"):
            parse(EpiFcrConfig, bad)
    with pytest.raises(ConfigError, match=r"at least 2 source domains for EpiFcr .* has 1 \("):
        make(COUNTS[:1])
    assert METHODS["epi-fcr-bsce"].settings == {"criterion": "bsce"}
    assert METHODS["epi-fcr"].settings == {"average_domains": False}
    assert METHODS["epi-fcr-scratch"].settings == {}
    assert EpiFcrConfig().weights == EpisodeWeights(feature=2.0, classifier=0.05, random=0.1)
