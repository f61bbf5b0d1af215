"""The loop: steps, journal, validation, checkpoints, and the evaluation at the end. One for every method."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import torch

from ltds.core.errors import TrainingError
from ltds.core.progress import SILENT, Advance, Progress
from ltds.core.rng import reseed_global
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch, Clock, StepLoss
from ltds.engine.assemble import Session
from ltds.engine.checkpoint import TrainState, load_average, load_checkpoint, save_checkpoint
from ltds.engine.features import domain_distances, sample_features
from ltds.engine.journal import Journal
from ltds.engine.optim import learning_rate
from ltds.engine.outcome import conclude, predict_split, write_metrics
from ltds.engine.phases import ScheduledPhase, freeze, start_phase
from ltds.evaluation.protocol import validate


def train(session: Session, run: RunDirectory, progress: Progress = SILENT, stop_after: int | None = None) -> None:
    """Train from where the run stands to its end, then evaluate. Afterwards the run is DONE.

    `stop_after`: return once this many steps are done and saved, as if the machine had been switched off.
    """
    state = restore(session, run)
    stop = min(session.steps, stop_after or session.steps)
    events = session.config.run.tensorboard
    with (
        Journal(run, state.step, events) as journal,
        progress.track("Training", session.steps, state.step) as advance,
    ):
        while state.step < stop:
            state = _train_phase(session, run, state, stop, journal, advance)
    if stop == session.steps:
        finish(session, run, progress)


def _train_phase(
    session: Session, run: RunDirectory, state: TrainState, stop: int, journal: Journal, advance: Advance
) -> TrainState:
    """Take the steps of the phase that the run stands in, from its start or from the middle."""
    scheduled = session.phase_at(state.step)
    if state.step == scheduled.start > 0:
        state = _enter(session, run, scheduled, state)
    freeze(session.method, scheduled.phase, session.learnable)
    per_epoch = session.config.schedule.steps_per_epoch
    every = session.config.run.checkpoint_every or per_epoch
    for batch in session.batches(state.step, min(stop, scheduled.stop)):
        loss = take_step(session, batch, state.step, journal)
        state = replace(state, step=state.step + 1)
        if state.step % per_epoch == 0:
            state = _validate(session, run, state, journal, scheduled)
            _measure(session, state.step, journal)
        if state.step % every == 0 or state.step in (stop, scheduled.stop):
            _save(session, run, state, journal)
        advance(note=_note(state, loss))
    return state


def _enter(session: Session, run: RunDirectory, scheduled: ScheduledPhase, state: TrainState) -> TrainState:
    """Begin a later phase. A run that stopped just here does the same again: nothing but the weights goes in."""
    if scheduled.phase.from_best:
        before = session.phase_at(scheduled.start - 1)
        load_checkpoint(run.best_of(before.phase.name), session.method, identity=session.identity)
    start_phase(scheduled, session.method, session.optimizer, session.config.run.seed)
    session.average.clear()
    return TrainState(step=state.step)  # the best so far was the best of another phase


def restore(session: Session, run: RunDirectory) -> TrainState:
    """Put the session where the run's last checkpoint left it; a run without one starts at step 0."""
    if not run.last_checkpoint.is_file():
        return TrainState()
    state = load_checkpoint(run.last_checkpoint, session.method, session.optimizer, session.identity)
    session.average.tensors = load_average(run.last_checkpoint, session.method)
    return state


def finish(session: Session, run: RunDirectory, progress: Progress = SILENT) -> None:
    """Predict validation and test with the best weights of the last phase, write the metrics, mark the run as done."""
    best = load_checkpoint(run.best_checkpoint, session.method, identity=session.identity)
    if session.method.concludes:
        conclude(session, progress)
        save_checkpoint(run.best_checkpoint, session.method, None, best, session.identity)
    for split in ("val", "test"):
        if len(session.rows(split)):
            predict_split(session, split, progress).save(run.predictions_file(split))
    sample_features(session, progress).save(run.features_file)
    write_metrics(run)
    run.mark_done()


def take_step(session: Session, batch: Batch, step: int, journal: Journal) -> float:
    """One step of training, written to the journal; its loss."""
    config, started = session.config, time.perf_counter()
    scheduled, per_epoch = session.phase_at(step), config.schedule.steps_per_epoch
    clock = Clock(config.run.seed, step - scheduled.start, scheduled.steps, per_epoch, scheduled.phase.name)
    reseed_global(config.run.seed, "step", step)
    lr = learning_rate(step, config.optimizer.lr, config.schedule, scheduled)
    for group in session.optimizer.param_groups:
        group["lr"] = lr
    session.method.train()
    loss = session.method.loss(batch, clock)
    total, terms = _finite(loss, step)
    session.optimizer.zero_grad(set_to_none=True)
    loss.total.backward()  # type: ignore[no-untyped-call]
    session.optimizer.step()
    session.average.update(session.method, scheduled, step)
    journal.step(step + 1, step // per_epoch, lr, total, terms, time.perf_counter() - started)
    return total


def _finite(loss: StepLoss, step: int) -> tuple[float, dict[str, float]]:
    """The total and the terms as numbers; a NaN or infinite one stops the run by name."""
    terms = {name: value.item() for name, value in loss.terms.items()}
    total = loss.total.item()
    parts = {**terms, "total": total}
    broken = {name: value for name, value in parts.items() if not math.isfinite(value)}
    if broken:
        became = " and ".join(f"the term '{name}' became {value}" for name, value in broken.items())
        raise TrainingError(
            f"Expected a finite loss at step {step + 1}, but {became}. The last checkpoint is kept: train anew with a "
            "smaller learning rate (--set optimizer.lr=...) and another --out."
        )
    return total, terms


def _validate(
    session: Session, run: RunDirectory, state: TrainState, journal: Journal, scheduled: ScheduledPhase
) -> TrainState:
    """Keep the weights with the best mean over source domains of validation accuracy: never looks at test images.

    Without validation images every epoch counts as the best so far, so that the last one is kept.
    """
    _refuse_nan(session, state.step)
    with session.average.applied(session.method):
        found = validate(predict_split(session, "val"), session.task) if len(session.rows("val")) else {}
        accuracy = found.get("accuracy")
        best = accuracy is None or accuracy > state.best_accuracy
        if best:
            state = replace(state, best_accuracy=accuracy or 0.0, best_step=state.step)
            file = run.best_checkpoint if scheduled.last else run.best_of(scheduled.phase.name)
            save_checkpoint(file, session.method, None, state, session.identity)
    if accuracy is not None:
        epoch = state.step // session.config.schedule.steps_per_epoch - 1
        journal.validation(state.step, epoch, accuracy, found["per_domain"], best)
    return state


def _measure(session: Session, step: int, journal: Journal) -> None:
    """Write how far the source domains lie apart, after the epochs that ask for it."""
    every, epochs = session.config.run.frechet_every, step // session.config.schedule.steps_per_epoch
    if every and epochs % every == 0:
        distances = domain_distances(session)
        if distances:
            journal.frechet(step, epochs - 1, distances)


def _save(session: Session, run: RunDirectory, state: TrainState, journal: Journal) -> None:
    _refuse_nan(session, state.step)
    journal.sync()  # a checkpoint must never be ahead of its journal, even after a power cut
    average = session.average.tensors
    save_checkpoint(run.last_checkpoint, session.method, session.optimizer, state, session.identity, average)


def _refuse_nan(session: Session, step: int) -> None:
    """A finite loss can still have an infinite gradient: never save, nor select, what it has spoilt."""
    for name, value in session.method.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(
                f"Expected finite weights after step {step}, but '{name}' holds NaN or infinity. The last checkpoint "
                "is kept: train anew with a smaller learning rate (--set optimizer.lr=...) and another --out."
            )


def _note(state: TrainState, loss: float) -> str:
    best = f" · best val {100 * state.best_accuracy:.1f} %" if state.best_accuracy > 0 else ""
    return f"loss {loss:.3f}{best}"
