"""BoDA against its slow twin, when its centroids are computed, and what its settings do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from derivative import complex_gradient
from torch import nn
from torch.testing import assert_close

from ltds.core.config import parse
from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.core.types import Batch, Clock, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.fitting import fit_in_training
from ltds.engine.loop import train
from ltds.methods.boda import Boda, BodaConfig
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from reference import boda_reference as twin
from resuming import stop_and_resume
from toy import recorded, toy_session

COUNTS = np.array([[30, 5, 2], [2, 0, 4]])
LATE = Clock(seed=0, step=8, total=10, steps_per_epoch=1)


def make(**settings: Any) -> Boda:
    task = Task("t", ("a", "b", "c"), ("d0", "d1", "d2"), "d2", COUNTS)
    torch.manual_seed(3)
    problem = Problem(task=task, backbone=nn.Linear(4, 2, bias=False), feature_dim=2)
    return Boda(parse(BodaConfig, settings), problem).double().train()


def make_batch(seed: int, size: int = 6) -> Batch:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(size) % 3, np.array([0, 2, 0, 2, 0, 2])[:size]])
    domains = np.repeat(np.arange(2), size)
    return Batch.from_host(torch.as_tensor(rng.normal(size=(2 * size, 4))), labels, domains, np.arange(2 * size))


def test_a_step_is_the_slow_twin() -> None:
    """Centroids of one batch, the loss of another; every gradient, that of the backbone through both losses too."""
    weights = {"moments": 0.7, "alignment": 0.4}
    method = make(**weights, nu=0.8, temperature=0.1)
    first, second = make_batch(1), make_batch(2)
    with torch.no_grad():
        method.fit_in_training([first])
    loss = method.loss(second, LATE)
    loss.total.backward()

    shapes = [p.shape for p in method.parameters()]
    flat = np.concatenate([p.detach().numpy().ravel() for p in method.parameters()])
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    A = flat[: cuts[0]].reshape(shapes[0])
    rows = [twin.linear(A, x) for x in first.images.tolist()]
    means = twin.centroids(rows, first.host_labels.tolist(), first.host_domains.tolist())

    def slow(theta: np.ndarray) -> Any:
        parts = [part.reshape(shape) for part, shape in zip(np.split(theta, cuts), shapes, strict=True)]
        data = second.images.tolist(), second.host_labels.tolist(), second.host_domains.tolist()
        return twin.step(*parts, *data, means, COUNTS, weights=weights, nu=0.8, temperature=0.1)

    assert loss.total.item() == pytest.approx(float(slow(flat)), abs=1e-6)
    assert set(loss.terms) == {"classification", "moments", "alignment"}
    wanted = np.split(complex_gradient(slow, flat), cuts)
    for parameter, gradient in zip(method.parameters(), wanted, strict=True):
        assert_close(parameter.grad, torch.as_tensor(gradient).view(parameter.shape), rtol=0, atol=1e-10)
        assert np.abs(gradient).max() > 1e-3


def test_centroids_are_computed_at_the_start_and_every_so_many_epochs() -> None:
    def when(method: Boda, total: int = 40, per_epoch: int = 4, phase: str = "main") -> list[int]:
        clocks = (Clock(0, step, total, per_epoch, phase) for step in range(total))
        return [clock.step for clock in clocks if method.fits_before(clock)]

    assert when(make()) == list(range(4, 40, 4))
    assert when(make(start=0.5, refresh_epochs=2)) == [20, 28, 36]
    assert when(make(start=0.11)) == [*range(5, 40, 4)], "from the first step at or after the share"
    assert when(make(alignment=0.0)) == []
    assert when(make(retrain_classifier=True), phase="classifier") == []


def test_there_is_no_alignment_before_the_first_centroids() -> None:
    method, batch = make(start=0.5), make_batch(1)
    early, late = (method.loss(batch, Clock(0, step, 10, 1)) for step in (4, 5))
    assert set(early.terms) == {"classification", "moments"}
    assert set(late.terms) == {"classification", "moments", "alignment"}


def test_the_engine_shows_all_training_images_once_in_evaluation_mode(toy: Manifest) -> None:
    """Against means of the network's own features, image by image; BatchNorm learns nothing from them."""
    session = toy_session(toy, "boda")
    method = session.method
    assert isinstance(method, Boda)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    fit_in_training(session, step=1)
    for name, value in method.state_dict().items():
        assert torch.equal(value, before[name]) == (not name.startswith("centroids")), name
    pairs = zip(method.centroids.domains.tolist(), method.centroids.labels.tolist(), strict=True)
    counts = toy.task("wax").counts
    for (domain, label), value in zip(pairs, method.centroids.value, strict=True):
        rows = [r for r in toy.rows("train", session.task.sources[domain]) if toy.labels[r] == label]
        assert len(rows) == counts[domain, label] > 0
        with torch.no_grad():
            images = torch.cat([session.inputs.evaluation(np.array([row])) for row in rows])
            assert_close(value, method.eval().backbone(images).mean(dim=0), rtol=1e-4, atol=1e-5)


class LooksTwice(Boda):
    """Computes two things from all training images, in two loops."""

    def fit_in_training(self, training: Iterable[Batch]) -> None:
        self.seen = [sum(len(batch) for batch in training) for _ in range(2)]


def test_each_loop_over_the_training_images_shows_all_of_them(toy: Manifest) -> None:
    session = toy_session(toy, f"{__name__}:LooksTwice")
    fit_in_training(session, step=0)
    assert not hasattr(session.method, "seen"), "before the first step with centroids"
    fit_in_training(session, step=1)
    assert session.method.seen == [len(session.rows("train"))] * 2 != [0, 0]


class InTurn(Boda):
    """Notes when it computes centroids and when it takes a step."""

    def fit_in_training(self, training: Iterable[Batch]) -> None:
        self.notes = [*getattr(self, "notes", []), "centroids"]
        super().fit_in_training(training)

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        self.notes = [*getattr(self, "notes", []), clock.step]
        assert bool(self.centroids.fitted) == (clock.step >= 1)
        return super().loss(batch, clock)


def test_centroids_are_computed_before_the_step_that_needs_them(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, f"{__name__}:InTurn")
    train(session, recorded(session, tmp_path / "run"))
    assert session.method.notes == [0, "centroids", 1, 2, "centroids", 3, 4, "centroids", 5]


LATER = {"start": 0.4, "refresh_epochs": 2}
RETRAINED = {"retrain_classifier": True}


# Stopped before the first centroids, just before them, between two computations, just before they are blended.
STOPS = [({"start": 0.2}, stop, stop > 2) for stop in (1, 2, 3, 4, 5)]
STOPS += [(LATER, 3, False), (LATER, 5, True), (RETRAINED, 1, False), (RETRAINED, 3, True), (RETRAINED, 7, True)]


@pytest.mark.parametrize(("method", "stop", "fitted"), STOPS)
def test_it_resumes_bit_for_bit_wherever_the_centroids_are(
    toy: Manifest, tmp_path: Path, method: dict[str, Any], stop: int, fitted: bool
) -> None:
    session = stop_and_resume(toy, tmp_path, "boda", stop, method=method, averaging={"name": "ema", "start": 0.0})
    assert isinstance(session.method, Boda)
    assert bool(session.method.centroids.fitted) == fitted


def test_retraining_changes_the_classifier_alone(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, "boda-crt")
    run = recorded(session, tmp_path / "run")
    train(session, run)
    ended = {name: value.clone() for name, value in session.method.state_dict().items()}
    load_checkpoint(run.best_of("main"), session.method)
    for name, value in session.method.state_dict().items():
        assert torch.equal(value, ended[name]) != name.startswith("classifier"), name


def test_the_second_phase_is_plain_cross_entropy_on_the_features_as_they_are() -> None:
    method, batch = make(retrain_classifier=True, criterion="dc"), make_batch(1)
    _, classifier = method.phases()
    loss = method.loss(batch, Clock(0, 9, 10, 1, classifier.name))
    loss.total.backward()
    assert_close(loss.total, F.cross_entropy(method.classifier(method.backbone(batch.images)), batch.labels))
    assert all(parameter.grad is None for parameter in method.backbone.parameters())
    main, second = (method.training_passes(batch, phase) for phase in method.phases())
    assert [len(images) for images in main] == [6, 6], "BatchNorm learns in a pass for each domain"
    assert second == [], "and nothing while only the classifier is trained"


def test_boda_crt_begins_as_boda() -> None:
    config = METHODS["boda-crt"].method.Config(**METHODS["boda-crt"].settings)
    assert Boda.begins_as(config) == (Boda, BodaConfig())
    assert Boda.begins_as(BodaConfig()) is None


def test_every_setting_changes_something_and_bad_ones_are_refused() -> None:
    def total(**settings: Any) -> float:
        method = make(**settings)
        with torch.no_grad():
            for seed in (1, 2):
                method.fit_in_training([make_batch(seed)])
        return method.loss(make_batch(3), LATE).total.item()

    base = total()
    changes = [{"criterion": "dc"}, {"alignment": 0.2}, {"moments": 0.5}, {"nu": 0.0}, {"temperature": 0.5}]
    for change in [*changes, {"momentum": 0.6}]:
        assert abs(total(**change) - base) > 1e-6, change
    with pytest.raises(ConfigError, match="use the method agg"):
        make(alignment=0.0, moments=0.0)
    with pytest.raises(ConfigError, match="nu"):
        make(alignment=0.0, nu=0.1)
    with pytest.raises(ConfigError, match="start"):
        make(start=1.0)


def test_one_source_domain_is_refused() -> None:
    task = Task("t", ("a", "b"), ("d0", "d1"), "d1", np.array([[3, 2]]))
    with pytest.raises(ConfigError, match="at least 2 source domains"):
        Boda(BodaConfig(), Problem(task=task, backbone=nn.Linear(4, 2), feature_dim=2))
