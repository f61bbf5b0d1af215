"""A step does not make the host wait for the device, except where it looks at the losses of the steps before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ltds.core.errors import TrainingError
from ltds.core.types import Batch, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine import step_numbers
from ltds.engine.fitting import fit_in_training
from ltds.engine.loop import take_step, train
from ltds.engine.restore import restore
from ltds.engine.session import Session
from ltds.engine.start import resume_run
from ltds.engine.step_numbers import StepNumbers, look_every
from other_device import other_device, waited
from resuming import assert_same_outcome, journal
from toy import recorded, toy_session


class Lines:
    """A journal in memory."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float, dict[str, float]]] = []

    def step(self, step: int, epoch: int, lr: float, loss: float, terms: Mapping[str, float], seconds: float) -> None:
        self.rows.append((step, loss, dict(terms)))


WITHOUT_WAITING = ("agg", "bsce", "dc", "la", "isda", "equal", "remix", "mixstyle", "epi-fcr", "cumix", "daml", "crt")
WITHOUT_WAITING += ("masf", "masf-scratch")
FULL_ISDA = {"name": "isda", "covariance": "full"}
WITH_PROTOTYPES: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in ("ltds", "ltds-paper", "ltds-hidden-names", "ltds-i", "ltds-k", "mldg")},
    "ltds-code": {"name": "ltds-code"},
    "a sample of the classes": {"name": "ltds", "contrast_classes": 3},
}


@pytest.mark.parametrize("method", WITHOUT_WAITING)
def test_no_step_waits_between_two_looks(toy: Manifest, method: str) -> None:
    with other_device():
        session = toy_session(toy, method, optimizer={"clip_norm": 5.0}, run={"device": "auto"})
        lines = Lines()
        numbers = StepNumbers(lines, every=3)
        for step in range(2):
            batch = session.batch(step)
            waited.clear()
            take_step(session, batch, step, numbers)
            assert waited == []
            assert lines.rows == []
        take_step(session, session.batch(2), 2, numbers)
    assert [step for step, _, _ in lines.rows] == [1, 2, 3]


def waits_of_steps(session: Session, steps: Iterable[int]) -> list[list[str]]:
    """What each of these steps waited for."""
    numbers, found = StepNumbers(Lines(), every=100), []
    for step in steps:
        batch = session.batch(step)
        waited.clear()
        fit_in_training(session, step)
        take_step(session, batch, step, numbers)
        found.append(list(waited))
    return found


def test_boda_waits_only_where_it_computes_its_centroids(toy: Manifest) -> None:
    """Once an epoch of two steps, from the second step on."""
    with other_device():
        session = toy_session(toy, "boda", run={"device": "auto"})
        waits = waits_of_steps(session, range(session.steps))
    assert [bool(waited_for) for waited_for in waits] == [False, True, False, True, False, True]


def test_a_full_covariance_waits_for_nothing(toy: Manifest) -> None:
    with other_device():
        session = toy_session(toy, "isda", method=FULL_ISDA, run={"device": "auto"})
        assert waits_of_steps(session, (0, session.steps - 1)) == [[], []]


@pytest.mark.parametrize("many_classes", [False, True])
@pytest.mark.parametrize("case", WITH_PROTOTYPES)
def test_ltds_waits_once_for_the_prototypes_that_it_starts_with(
    toy: Manifest, monkeypatch: pytest.MonkeyPatch, case: str, many_classes: bool
) -> None:
    """Which prototypes there are decides the sizes of tensors: the host keeps count of them."""
    if many_classes:
        monkeypatch.setattr("ltds.losses.kernels.choice.FUSED_FROM", 2)
    with other_device():
        session = toy_session(toy, method=WITH_PROTOTYPES[case], run={"device": "auto"})
        assert waits_of_steps(session, (0, 1, session.steps - 1)) == [["_to_copy"], [], []]


def test_ltds_waits_once_after_loading_a_checkpoint(toy: Manifest, tmp_path: Path) -> None:
    """And goes on with the prototypes of the checkpoint, not with those from before."""
    with other_device():
        session = toy_session(toy, "ltds", run={"device": "auto", "checkpoint_every": 1})
        run = recorded(session, tmp_path / "run")
        train(session, run, stop_after=1)
        fresh, later = (toy_session(toy, "ltds", run={"device": "auto", "checkpoint_every": 1}) for _ in range(2))
        waits_of_steps(later, range(4))
        for resumed in (fresh, later):
            restore(resumed, run)
            assert waits_of_steps(resumed, (1, 2, 3)) == [["_to_copy"], [], []]
        states = [session.method.state_dict() for session in (fresh, later)]
        assert all(torch.equal(value.cpu(), states[1][name].cpu()) for name, value in states[0].items())


@pytest.mark.parametrize("every", [2, 4, 100])
def test_the_journal_and_the_outcome_do_not_depend_on_looking(toy: Manifest, tmp_path: Path, every: int) -> None:
    runs = []
    for look in (1, every):
        session = toy_session(toy, "agg", run={"look_every": look, "threads": 1, "device": "cpu"})
        runs.append(recorded(session, tmp_path / str(look)))
        train(session, runs[-1], stop_after=3)
        assert journal(runs[-1])[-1]["step"] == 3  # nothing waits when a checkpoint is saved
        resume_run(runs[-1])
    assert_same_outcome(*runs)


def test_the_seconds_of_steps_include_the_wait_for_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a step returns long before it is computed; the look waits for all of them."""
    clock = [100.0]
    monkeypatch.setattr(step_numbers.time, "perf_counter", lambda: clock[0])

    class Slow:
        def tolist(self) -> list[float]:
            clock[0] += 6.0
            return [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]

    monkeypatch.setattr(step_numbers.torch, "cat", lambda values: Slow())
    seconds: list[float] = []
    journal = SimpleNamespace(step=lambda *numbers: seconds.append(numbers[-1]))
    numbers = StepNumbers(journal, every=3)
    for step in range(3):
        numbers.check(StepLoss(torch.tensor(1.0), {"ce": torch.tensor(1.0)}), step)
        numbers.done(0, 0.1, 0.5)
    assert seconds == [2.5, 2.5, 2.5]


def test_a_broken_loss_is_named_at_the_next_look() -> None:
    lines = Lines()
    numbers = StepNumbers(lines, every=3)
    for step, value in enumerate([1.0, float("nan"), 2.0]):
        loss = StepLoss(torch.tensor(value + 1), {"ce": torch.tensor(1.0), "z2s": torch.tensor(value)})
        if step < 2:
            numbers.check(loss, step)
            numbers.done(0, 0.1, 0.5)
            continue
        numbers.check(loss, step)
        with pytest.raises(
            TrainingError, match="step 2, but the term 'z2s' became nan and the term 'total' became nan"
        ):
            numbers.done(0, 0.1, 0.5)
    assert lines.rows == []


def test_weights_that_a_late_look_finds_spoilt_are_never_saved(toy: Manifest, tmp_path: Path) -> None:
    settings = {"look_every": 100, "threads": 1, "device": "cpu", "checkpoint_every": 2}
    session = toy_session(toy, "agg", run=settings)
    run = recorded(session, tmp_path / "run")
    train(session, run, stop_after=2)
    saved = run.last_checkpoint.read_bytes()
    spoilt = session.method.loss

    def broken(batch: Batch, clock: Any) -> StepLoss:
        loss = spoilt(batch, clock)
        return StepLoss(loss.total * float("nan"), loss.terms)

    session.method.loss = broken  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="the term 'total' became nan"):
        train(session, run)
    assert run.last_checkpoint.read_bytes() == saved


def test_a_look_at_every_step_on_a_cpu_and_seldom_on_a_gpu() -> None:
    assert look_every(0, torch.device("cpu")) == 1
    assert look_every(0, torch.device("cuda")) == 10
    assert look_every(7, torch.device("cuda")) == 7


def test_samples_are_chosen_by_the_copy_on_the_host() -> None:
    """On the meta device there are no values to look at: only the copy says which samples are of a domain."""
    domains, labels = np.array([0, 1, 0, 2, 1, 2, 0, 0]), np.arange(8) + 10
    batch = Batch.from_host(torch.empty(8, 3, 4, 4, device="meta"), labels, domains, np.arange(8))
    assert [len(batch.of(domain)) for domain in range(3)] == [4, 2, 2]
    assert batch.of(0, 2).images.shape == (6, 3, 4, 4)
    first, second = batch.split(2)
    assert np.array_equal(first.host_domains, [0, 1, 0, 2])
    assert np.array_equal(second.host_domains, [1, 2, 0, 0])
    assert np.array_equal(second.host_labels, [14, 15, 16, 17])
    assert np.array_equal(second.of(0).host_labels, [16, 17])


def test_a_batch_from_elsewhere_is_asked_once_for_its_labels_and_domains() -> None:
    with other_device() as device:
        columns = (torch.tensor(values, device=device) for values in ([3, 4, 5], [0, 1, 0], [7, 8, 9]))
        batch = Batch(torch.rand(3, 3, 4, 4, device=device), *columns)
        parts = [batch.of(0), batch.of(1), *batch.split(1)]
        assert [part.host_labels.tolist() for part in parts] == [[3, 5], [4], [3, 4, 5]]
        assert waited == ["_to_copy", "_to_copy"]
        assert parts[0].labels.tolist() == [3, 5]
