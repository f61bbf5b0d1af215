"""Methods in phases: what each phase trains, from which weights it begins, and that it resumes around its boundary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ltds.core.types import Batch, Clock, Prediction, StepLoss
from ltds.data.manifest import Manifest
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.loop import train
from ltds.engine.optim import learning_rate
from ltds.engine.phases import schedule_phases
from ltds.engine.settings import ScheduleSettings
from ltds.engine.start import resume_run
from ltds.methods.agg import Agg
from ltds.methods.base import Phase
from ltds.methods.registry import METHODS
from resuming import assert_same_outcome
from toy import recorded, toy_session

PHASED = [name for name in ("crt", "lws", "daml-warmup") if name in METHODS]
PHASES = (Phase("first"), Phase("second", 1 / 3, "classes", ("classifier",), 0.5, "cosine", from_best=True))
OWN = {"method": {"name": "test_phases:TwoPhases"}}


class TwoPhases(Agg):
    """Agg, then a fresh classifier alone, then a shift of the logits that needs no gradient."""

    fits_after_training = True
    seen: tuple[Clock, ...] = ()
    shift: Tensor

    def __init__(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*args, **kwargs)
        self.register_buffer("shift", torch.zeros(len(self.task.classes)))

    def phases(self) -> tuple[Phase, ...]:
        return PHASES

    def start_phase(self, phase: Phase) -> None:
        assert phase.name == "second"
        self.classifier.reset_parameters()

    def loss(self, batch: Batch, clock: Clock) -> StepLoss:
        self.seen += (clock,)
        if clock.phase == "first":
            return super().loss(batch, clock)
        total = torch.nn.functional.cross_entropy(super().predict(batch.images).logits, batch.labels)
        return StepLoss(total)

    def fit_after_training(self, training: Iterable[Batch], validation: Iterable[Batch]) -> None:
        labels = torch.cat([batch.labels for batch in training])
        self.shift.copy_(torch.bincount(labels, minlength=len(self.shift)) / 100)
        assert sum(len(batch) for batch in validation) > 0

    def predict(self, images: Tensor) -> Prediction:
        plain = super().predict(images)
        return Prediction(plain.logits + self.shift, plain.features)


def test_phases_are_laid_out_in_whole_epochs() -> None:
    schedule = ScheduleSettings(epochs=10, steps_per_epoch=7)
    first, second = schedule_phases((Phase("a", 0.44), Phase("b", 0.001)), schedule)
    assert (first.start, first.stop, first.last) == (0, 4 * 7, False)
    assert (second.start, second.stop, second.last) == (4 * 7, 5 * 7, True)


@pytest.mark.parametrize(("share", "epochs"), [(0.5, 5), (0.25, 2), (0.4, 30), (0.1, 4), (0.35, 10)])
def test_shares_that_make_a_whole_fill_the_run(share: float, epochs: int) -> None:
    first, second = schedule_phases((Phase("a", share), Phase("b", 1 - share)), ScheduleSettings(epochs=epochs))
    assert first.steps >= 101
    assert (second.start, second.stop) == (first.stop, epochs * 101)


def test_learning_rates_within_a_phase() -> None:
    schedule = ScheduleSettings(epochs=10, steps_per_epoch=1, milestones=(0.5,))
    steps = schedule_phases(
        (Phase("a"), Phase("b", decay="cosine", lr_scale=2.0), Phase("c", decay="constant", lr_scale=0.1)), schedule
    )
    rate = [learning_rate(step, 0.1, schedule, next(s for s in steps if step < s.stop)) for step in range(30)]
    assert rate[4:6] == pytest.approx([0.1, 0.01])
    assert (rate[10], rate[15]) == pytest.approx((0.2, 0.1))  # half way down at epoch 5 of 10
    assert rate[20:] == pytest.approx([0.01] * 10)


def test_each_phase_trains_its_own_part_from_the_best_weights_before(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, **OWN)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    method = session.method
    assert isinstance(method, TwoPhases)
    assert [(c.phase, c.step, c.total) for c in method.seen] == [
        *(("first", step, 6) for step in range(6)),
        *(("second", step, 2) for step in range(2)),
    ]
    ended = {name: value.clone() for name, value in method.named_parameters()}
    load_checkpoint(run.best_of("first"), method)
    for name, value in method.named_parameters():
        assert torch.equal(value, ended[name]) == name.startswith("backbone"), name


def test_what_a_method_concludes_is_kept_with_its_weights(toy: Manifest, tmp_path: Path) -> None:
    session = toy_session(toy, **OWN)
    run = recorded(session, tmp_path / "run")
    train(session, run)
    load_checkpoint(run.best_checkpoint, session.method)
    assert session.method.shift.tolist() == pytest.approx([0.17, 0.11, 0.04, 0.05, 0.01, 0.0])


@pytest.mark.parametrize("stop", [5, 6, 7])
@pytest.mark.parametrize("method", [*PHASED, "test_phases:TwoPhases"])
def test_phases_resume_bit_for_bit_around_their_boundary(toy: Manifest, tmp_path: Path, method: str, stop: int) -> None:
    every_step = {"run": {"checkpoint_every": 1}}
    whole = toy_session(toy, method, **every_step)
    straight = recorded(whole, tmp_path / "straight")
    train(whole, straight)
    boundary = whole.phases[0].stop
    first = toy_session(toy, method, **every_step)
    broken = recorded(first, tmp_path / "broken")
    train(first, broken, stop_after=boundary + stop - 6)
    resume_run(broken, trust=["test_phases"])
    assert_same_outcome(straight, broken)


def test_a_crash_between_validation_and_saving_does_not_lose_the_best_of_the_phase_before(
    toy: Manifest, tmp_path: Path
) -> None:
    """After it, the new phase's best is on disk while the last checkpoint still stands at the boundary."""
    whole = toy_session(toy, **OWN)
    straight = recorded(whole, tmp_path / "straight")
    train(whole, straight)
    first = toy_session(toy, **OWN)
    broken = recorded(first, tmp_path / "broken")
    train(first, broken, stop_after=6)
    at_boundary = broken.last_checkpoint.read_bytes()
    resume_run(broken, trust=["test_phases"])
    broken.last_checkpoint.write_bytes(at_boundary)
    broken.done_file.unlink()
    resume_run(broken, trust=["test_phases"])
    assert_same_outcome(straight, broken)
