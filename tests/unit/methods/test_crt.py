"""cRT, LWS, tau-normalisation, nearest class means: what the second phase learns, and what it must leave alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.manifest import Manifest
from ltds.data.sampling import ClassBalanced
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.loop import train
from ltds.engine.optim import learning_rate
from ltds.engine.phases import freeze, schedule_phases, start_phase
from ltds.engine.settings import ScheduleSettings
from ltds.evaluation.table import PredictionTable
from ltds.methods.agg import Agg, AggConfig
from ltds.methods.crt import Decoupled, DecoupledConfig, closeness, tau_normalized
from ltds.methods.problem import Problem
from reference import crt_reference as twin
from toy import recorded, toy_session

FILE = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures" / "worked_examples.json"
FIRST = Clock(seed=0, step=0, total=1, steps_per_epoch=1, phase="main")
SECOND = Clock(seed=0, step=0, total=1, steps_per_epoch=1, phase="classifier")


@pytest.fixture
def fixture() -> Any:
    if not FILE.is_file():
        pytest.skip(f"the worked examples are not beside the repository ({FILE.parent.name}/{FILE.name})")
    return json.loads(FILE.read_text())["examples"]["crt"]


def task_of(counts: list[list[int]]) -> Task:
    names = tuple("abcdefgh"[: len(counts[0])])
    return Task("small", names, ("p", "q", "held"), "held", np.array(counts, dtype=np.int64))


SMALL = task_of([[5, 2, 0, 1], [0, 4, 0, 2]])  # 'c' is open


def flat_method(task: Task = SMALL, feature_dim: int = 12, **settings: str) -> Decoupled:
    """Features are the pixels themselves, in float64."""
    torch.manual_seed(0)
    return Decoupled(
        parse(DecoupledConfig, settings), Problem(task=task, backbone=nn.Flatten(), feature_dim=feature_dim)
    ).double()


def batch_of(labels: list[int], domains: list[int], seed: int = 0) -> Batch:
    images = torch.randn(len(labels), 3, 2, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Batch(images, torch.tensor(labels), torch.tensor(domains), torch.arange(len(labels)))


def points(*rows: list[float]) -> Tensor:
    """Images (N,1,1,D) whose features are these."""
    return torch.tensor(rows, dtype=torch.float64)[:, None, None, :]


# --- the numbers of Kang et al. -------------------------------------------------------------------------------------


def test_images_are_drawn_at_the_rates_of_the_fixture(fixture: Any) -> None:
    counts = [int(n) for n in fixture["inputs"]["class_counts"]]
    labels = np.repeat(np.arange(3), counts)
    sampler = ClassBalanced(np.arange(10), labels, batch=36, seed=0)
    drawn = Counter(np.concatenate([sampler(step) for step in range(20)]).tolist())
    for row, label in enumerate(labels):
        assert drawn[row] / 720 == pytest.approx(fixture["expected"]["instance_prob"][label])


def test_the_second_phase_decays_as_the_fixture(fixture: Any) -> None:
    schedule = ScheduleSettings(epochs=100, steps_per_epoch=1)
    first, second = schedule_phases(flat_method().phases(), schedule)
    assert (first.steps, second.start, second.steps) == (100, 100, fixture["inputs"]["epochs"])
    base = fixture["inputs"]["lr0"] / 0.75
    rates = [learning_rate(step, base, schedule, second) for step in range(100, 110)]
    assert rates == pytest.approx(fixture["expected"]["cosine_lr_epoch_0_to_9"])
    assert learning_rate(100, 0.1, schedule, second) == pytest.approx(0.2 * 192 / 512)


def test_rows_divided_by_their_length(fixture: Any) -> None:
    weight = torch.tensor([[3.0, 4.0], [0.0, 2.0]], dtype=torch.float64)
    expected = torch.tensor(fixture["expected"]["tau_norm_1_of_rows_3_4_and_0_2"], dtype=torch.float64)
    torch.testing.assert_close(tau_normalized(weight, torch.tensor(1.0)), expected)


@pytest.mark.parametrize(
    ("head", "lengths", "trainable"), [("crt", [100, 10], ("classifier.",)), ("lws", [100, 5], ("scales",))]
)
def test_what_the_second_phase_is(head: str, lengths: list[int], trainable: tuple[str, ...]) -> None:
    first, second = flat_method(head=head).phases()
    laid = schedule_phases((first, second), ScheduleSettings(epochs=100, steps_per_epoch=1))
    assert [scheduled.steps for scheduled in laid] == lengths
    assert (first.sampler, second.sampler, second.from_best) == ("domains", "classes", True)
    assert second.trainable == trainable
    assert [len(flat_method(head=other).phases()) for other in ("tau", "ncm")] == [1, 1]


# --- who learns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["crt", "lws", "tau", "ncm"])
def test_the_first_phase_is_agg(head: str) -> None:
    method = flat_method(head=head, criterion="bsce")
    torch.manual_seed(0)
    agg = Agg(
        parse(AggConfig, {"criterion": "bsce"}), Problem(task=SMALL, backbone=nn.Flatten(), feature_dim=12)
    ).double()
    batch = batch_of([0, 1, 3, 1, 3], [0, 0, 0, 1, 1])
    assert torch.equal(method.predict(batch.images).logits, agg.predict(batch.images).logits)
    assert torch.equal(method.loss(batch, FIRST).total, agg.loss(batch, FIRST).total)


@pytest.mark.parametrize("head", ["crt", "lws"])
def test_the_second_phase_pays_plain_cross_entropy_whatever_the_criterion_before(head: str) -> None:
    method = flat_method(head=head, criterion="dc")
    batch = batch_of([0, 1, 3, 1, 3], [0, 0, 0, 1, 1])
    scales = [1.0] * 4
    if head == "lws":
        scales = [0.5, 2.0, 1.5, -1.0]
        method.scales.data = torch.tensor(scales, dtype=torch.float64)
    weight, bias = method.classifier.weight.tolist(), method.classifier.bias.tolist()
    logits = [
        [s * (twin.dot(w, f) + b) for s, w, b in zip(scales, weight, bias, strict=True)]
        for f in batch.images.flatten(1).tolist()
    ]
    assert method.loss(batch, SECOND).total.item() == pytest.approx(twin.cross_entropy(logits, batch.labels.tolist()))


@pytest.mark.parametrize(("head", "learners"), [("crt", {"classifier.weight", "classifier.bias"}), ("lws", {"scales"})])
def test_only_the_head_gets_gradient_in_the_second_phase(toy: Manifest, head: str, learners: set[str]) -> None:
    session = toy_session(toy, head)
    first, second = session.phases
    got: list[set[str]] = []
    for scheduled, clock in ((first, FIRST), (second, SECOND)):
        freeze(session.method, scheduled.phase, session.learnable)
        session.optimizer.zero_grad(set_to_none=True)
        session.method.loss(session.batch(scheduled.start), clock).total.backward()
        got.append({name for name, p in session.method.named_parameters() if p.grad is not None})
    assert got == [{name for name, _ in session.method.named_parameters()} - {"scales"}, learners]


@pytest.mark.parametrize("head", ["crt", "lws"])
def test_features_are_constants_in_the_second_phase_whoever_froze_them(toy: Manifest, head: str) -> None:
    session = toy_session(toy, head)
    session.method.loss(session.batch(session.phases[1].start), SECOND).total.backward()
    assert all(p.requires_grad and p.grad is None for p in session.method.backbone.parameters())


def test_the_first_phase_learns_all_that_agg_learns(toy: Manifest, tmp_path: Path) -> None:
    """With the semantic loss: its projector learns in the first phase, and rests in the second."""
    session = toy_session(toy, "crt", method={"z2s": 0.1})
    start = {name: value.clone() for name, value in session.method.to_semantic.state_dict().items()}
    run = recorded(session, tmp_path / "run")
    train(session, run)
    states = []
    for file in (run.best_of("main"), run.last_checkpoint):
        load_checkpoint(file, session.method)
        states.append({name: value.clone() for name, value in session.method.to_semantic.state_dict().items()})
    assert all(torch.equal(states[0][name], states[1][name]) for name in start)
    assert not any(torch.equal(states[0][name], start[name]) for name in start)


def test_the_fresh_classifier_owes_nothing_to_the_old_one(toy: Manifest) -> None:
    fresh = []
    for scale in (1.0, 3.0):
        session = toy_session(toy, "crt")
        before = session.method.classifier.weight
        before.data *= scale
        old = before.detach().clone()
        start_phase(session.phases[1], session.method, session.optimizer, seed=0)
        assert session.method.classifier.weight is before, "the optimizer must still hold it"
        assert not torch.equal(before, old)
        fresh.append(before.detach().clone())
    assert torch.equal(*fresh)


@pytest.mark.parametrize("second_phase_batchnorm", ["train", "eval"])
@pytest.mark.parametrize("head", ["crt", "lws"])
def test_the_second_phase_leaves_the_best_features_alone(
    toy: Manifest, tmp_path: Path, head: str, second_phase_batchnorm: str
) -> None:
    session = toy_session(toy, head, method={"second_phase_batchnorm": second_phase_batchnorm})
    run = recorded(session, tmp_path / "run")
    train(session, run)
    load_checkpoint(run.last_checkpoint, session.method)
    ended = {name: value.clone() for name, value in session.method.state_dict().items()}
    load_checkpoint(run.best_of("main"), session.method)
    same = {name for name, value in session.method.state_dict().items() if torch.equal(value, ended[name])}
    learned = {"classifier.weight", "classifier.bias"} if head == "crt" else {"scales"}
    moving = {name for name in ended if "running" in name or "num_batches" in name}
    assert set(ended) - same == learned | (moving if second_phase_batchnorm == "train" else set())


@pytest.mark.parametrize("mode", [True, False])
def test_statistics_only_move_while_the_method_trains(toy: Manifest, mode: bool) -> None:
    session = toy_session(toy, "crt")
    norm = session.method.backbone.body[1]
    session.method.train(mode)
    session.method.loss(session.batch(session.phases[1].start), SECOND)
    assert int(norm.num_batches_tracked) == int(mode), "one pass over the whole pool, or none that counts"


def test_a_class_without_images_has_no_turn(toy: Manifest) -> None:
    # 'fox' (5) lives only in the held-out 'wax'
    session = toy_session(toy, "crt", schedule={"epochs": 3, "steps_per_epoch": 5})
    start = session.phases[1].start
    batches = [session.batch(start + step) for step in range(5)]
    assert [len(batch) for batch in batches] == [16] * 5
    counts = torch.bincount(torch.cat([batch.labels for batch in batches]), minlength=6)
    assert counts.tolist() == [16] * 5 + [0], "80 images: 4 rounds of 5 classes x 4"


# --- tau ------------------------------------------------------------------------------------------------------------


def test_tau_is_the_twin_s_best_over_domains_on_known_classes() -> None:
    chosen = set()
    for seed in range(12):
        method = flat_method(head="tau")
        with torch.no_grad():
            method.classifier.weight *= torch.tensor([4.0, 2.0, 0.3, 0.2])[:, None]
        labels, domains = [0, 0, 0, 1, 3, 1, 3, 2, 2, 1, 3, 3, 3, 2], [0] * 8 + [1] * 6
        batch = batch_of(labels, domains, seed)
        with torch.no_grad():
            method.fit_after_training([], [batch.of(1), batch.of(0)])
        features, weight = batch.images.flatten(1).tolist(), method.classifier.weight.tolist()
        best = twin.first_largest(twin.tau_scores(features, labels, domains, weight, [True, True, False, True]))
        assert method.tau.item() == pytest.approx(best / 10)
        expected = torch.tensor([twin.tau_logits(f, weight, best / 10) for f in features], dtype=torch.float64)
        torch.testing.assert_close(method.predict(batch.images).logits, expected)
        chosen.add(best)
    assert len(chosen) > 3, "else this shows little"


def test_the_score_is_a_mean_over_domains_and_equals_go_to_the_smaller_tau() -> None:
    """Row 0 is three times as long: image (1, .5) is of class 0 while .5 < 3^(1 - tau), so up to tau 1.6."""
    method = flat_method(task_of([[1, 1], [1, 1]]), feature_dim=2, head="tau")
    method.classifier.weight.data = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)

    def best(images: Tensor, labels: list[int], domains: list[int]) -> float:
        batch = Batch(images, torch.tensor(labels), torch.tensor(domains), torch.arange(len(labels)))
        with torch.no_grad():
            method.fit_after_training([], [batch])
        return round(method.tau.item(), 6)

    assert best(points([1.0, 0.5]), [0], [0]) == 0.0, "right from 0 to 1.6"
    assert best(points([1.0, 0.5]), [1], [0]) == 1.7, "right from 1.7 to 2"
    # One image of domain 0 wants a small tau, two of domain 1 a large one: a draw between domains, not 1 to 2.
    assert best(points([1.0, 0.5], [1.0, 0.5], [1.0, 0.5]), [0, 1, 1], [0, 1, 1]) == 0.0
    assert best(points([1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [9.0, 0.1]), [1, 1, 0, 0], [0, 0, 0, 1]) == 1.7


def test_tau_zero_is_the_plain_classifier_without_its_bias() -> None:
    method = flat_method(head="tau")
    method.classifier.bias.data += torch.tensor([50.0, 0.0, 0.0, 0.0])
    batch = batch_of([0, 1, 3] * 5, [0] * 15)
    plain = method.predict(batch.images).logits
    assert torch.equal(plain, method.classifier(batch.images.flatten(1))), "before fit_after_training: h, with its bias"
    method.fitted.fill_(True)
    product = batch.images.flatten(1) @ method.classifier.weight.T
    torch.testing.assert_close(method.predict(batch.images).logits, product)
    assert torch.equal(method.predict(batch.images).logits.argmax(1), product.argmax(1))
    assert not torch.equal(product.argmax(1), plain.argmax(1))


def test_a_row_of_zeros_is_no_division_by_zero() -> None:
    rows = tau_normalized(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor(2.0))
    torch.testing.assert_close(rows, torch.tensor([[0.0, 0.0], [0.12, 0.16]]))


# --- class means ----------------------------------------------------------------------------------------------------


def test_nearest_class_mean_is_scikit_learn_s_nearest_centroid() -> None:
    from sklearn.neighbors import NearestCentroid

    method = flat_method(head="ncm")
    labels = [0] * 5 + [1] * 6 + [3] * 3
    batch = batch_of(labels, [0] * 7 + [1] * 7)
    halves = [batch.of(0), batch.of(1)]
    with torch.no_grad():
        method.fit_after_training(halves, [])
    reference = NearestCentroid().fit(batch.images.flatten(1).numpy(), np.array(labels))
    np.testing.assert_allclose(method.means[[0, 1, 3]].numpy(), reference.centroids_)
    others = batch_of([0] * 200, [0] * 200, seed=9).images
    logits = method.predict(others).logits
    np.testing.assert_array_equal(logits.argmax(1).numpy(), reference.predict(others.flatten(1).numpy()))
    distances = ((others.flatten(1)[:, None] - method.means[None]) ** 2).sum(-1)
    torch.testing.assert_close(logits[:, [0, 1, 3]], -distances[:, [0, 1, 3]])


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_a_class_without_images_never_wins_and_stays_finite(distance: str) -> None:
    method = flat_method(task_of([[2, 0, 1], [1, 0, 1]]), feature_dim=2, head="ncm", distance=distance).float()
    images = points([3.0, 0.0], [0.0, 3.0], [1.0, 0.0]).float()
    batch = Batch(images, torch.tensor([0, 2, 0]), torch.tensor([0, 0, 1]), torch.arange(3))
    with torch.no_grad():
        method.fit_after_training([batch], [])
    assert method.means.tolist() == [[2.0, 0.0], [0.0, 0.0], [0.0, 3.0]]
    logits = method.predict(points([0.0, 0.0], [1e15, -1e15], [0.1, 0.2]).float()).logits
    assert torch.isfinite(logits).all()
    assert torch.isfinite(logits.softmax(1)).all()
    assert (logits.argmax(1) != 1).all()
    assert (logits.softmax(1)[:, 1] == 0).all()


def test_cosine_looks_at_directions_alone() -> None:
    features, means = torch.tensor([[0.1, 0.0], [5.0, 5.0]]), torch.tensor([[9.0, 0.0], [0.0, 0.2]])
    expected = 2 * torch.tensor([[1.0, 0.0], [0.5**0.5, 0.5**0.5]]) - 2
    torch.testing.assert_close(closeness(features, means, "cosine"), expected)


@pytest.mark.parametrize("head", ["tau", "ncm"])
def test_concluding_twice_is_concluding_once(head: str) -> None:
    method = flat_method(head=head)
    batch = batch_of([0, 1, 3] * 5, [0] * 8 + [1] * 7)
    states = []
    for _ in range(2):
        with torch.no_grad():
            method.fit_after_training([batch], [batch])
        states.append({name: value.clone() for name, value in method.state_dict().items()})
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert bool(states[0]["fitted"])


@pytest.mark.parametrize("name", ["tau-norm", "ncm"])
def test_what_was_fitted_makes_the_predictions_of_the_run(toy: Manifest, tmp_path: Path, name: str) -> None:
    session = toy_session(toy, name)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    table = PredictionTable.load(run.predictions_file("val"))
    load_checkpoint(run.last_checkpoint, session.method)
    assert not bool(session.method.fitted), "training ends before"
    load_checkpoint(run.best_checkpoint, session.method)
    method = session.method.eval()
    with torch.no_grad():
        features = torch.cat([method.backbone(batch.images) for batch in session.labelled("val")])
    if name == "ncm":
        with torch.no_grad():
            seen = [(method.backbone(b.images), b.labels) for b in session.labelled("train")]
        every, labels = (torch.cat(column) for column in zip(*seen, strict=True))
        means = torch.stack([every[labels == c].mean(0) for c in range(5)])
        expected = -((features[:, None] - means[None]) ** 2).sum(-1)
        assert (table.logits[:, 5] < -1e38).all()
    else:
        weight = method.classifier.weight.detach()[:5]
        expected = features @ (weight / weight.norm(dim=1, keepdim=True) ** float(method.tau)).T
    np.testing.assert_allclose(table.logits[:, :5], expected.numpy(), rtol=1e-4, atol=1e-5)


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "tau", "second_phase_batchnorm": "eval"}, "second_phase_batchnorm has no effect with head=tau"),
        ({"head": "ncm", "second_phase_batchnorm": "eval"}, "second_phase_batchnorm has no effect with head=ncm"),
        ({"distance": "cosine"}, "distance has no effect with head=crt"),
        ({"head": "tau", "posthoc_tau": 1.0}, "posthoc_tau has no effect with head=tau"),
        ({"temperature": 0.2}, "temperature has no effect without the semantic loss"),
        ({"head": "crtt"}, "'crt', 'lws', 'tau' or 'ncm'"),
    ],
)
def test_settings_that_do_nothing_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(DecoupledConfig, settings)


@pytest.mark.parametrize("head", ["crt", "lws", "tau", "ncm"])
def test_sources_without_any_image_are_refused(head: str) -> None:
    with pytest.raises(DataError, match=r"Expected some class of task 'small' to be in its source domains, but got no"):
        flat_method(task_of([[0, 0], [0, 0]]), head=head)


def test_tau_without_validation_images_is_refused() -> None:
    method = flat_method(head="tau")
    for validation in ([], [batch_of([2, 2], [0, 1])]):  # 'c' is open: no evidence either
        with pytest.raises(DataError, match=r"Expected tau to be chosen on validation images .* got none\. Mark some"):
            method.fit_after_training([], validation)
    assert not bool(method.fitted)


def test_means_without_a_class_that_the_task_counts_are_refused() -> None:
    with pytest.raises(DataError, match="Expected class 'd' to be among the images to average, but got none of it"):
        flat_method(head="ncm").fit_after_training([batch_of([0, 1], [0, 1])], [])
