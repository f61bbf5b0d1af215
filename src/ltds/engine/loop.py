"""The training loop, one for every method: steps, journal, validation, checkpoints, and the evaluation at the end."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace

import torch

from ltds.core.errors import LtdsWarning
from ltds.core.progress import SILENT, Advance, Progress
from ltds.core.rng import reseed_global
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch
from ltds.engine.agree import restored_in_all
from ltds.engine.batchnorm import estimate_statistics
from ltds.engine.checkpoint import TrainState, save_checkpoint
from ltds.engine.features import validation_distances
from ltds.engine.finite import require_finite_weights
from ltds.engine.fitting import fit_in_training
from ltds.engine.fixed_state import require_same_state
from ltds.engine.journal import Journal, SilentJournal
from ltds.engine.optim import learning_rate, set_learning_rate
from ltds.engine.outcome import finish, predict_split
from ltds.engine.phases import ScheduledPhase, freeze, start_phase
from ltds.engine.restore import load_own_checkpoint, restore
from ltds.engine.session import Session
from ltds.engine.step_loss import checked_loss
from ltds.engine.step_numbers import StepNumbers, look_every
from ltds.engine.swad import WeightWindow, validation_loss
from ltds.evaluation.protocol import validation_accuracy


def train(session: Session, run: RunDirectory, progress: Progress = SILENT, stop_after: int | None = None) -> None:
    """Train from the run's last checkpoint to its end, then evaluate. Afterwards the run is DONE.

    `stop_after`: return once this many steps are done and saved, as if the machine had been switched off.
    """
    state = restored_in_all(session, lambda: restore(session, run))
    stop = min(session.steps, stop_after or session.steps)
    events = session.config.run.tensorboard
    with (
        Journal(run, state.step, events) if session.ranks.first else SilentJournal() as journal,
        progress.track("Training", session.steps, state.step) as advance,
    ):
        while state.step < stop:
            state = _train_phase(session, run, state, stop, journal, advance, progress)
    if stop == session.steps:
        finish(session, run, progress)


def _train_phase(
    session: Session,
    run: RunDirectory,
    state: TrainState,
    stop: int,
    journal: Journal,
    advance: Advance,
    progress: Progress,
) -> TrainState:
    """Take the steps of the current phase, from its start or from the middle."""
    scheduled = session.phase_at(state.step)
    if state.step == scheduled.start > 0:
        state = _start_phase(session, run, scheduled, state)
    freeze(session.method, scheduled.phase, session.learnable)
    per_epoch = session.config.schedule.steps_per_epoch
    every = session.config.run.checkpoint_every or per_epoch
    numbers = StepNumbers(journal, look_every(session.config.run.look_every, session.device))
    begun = state.step
    for batch in session.batches(state.step, min(stop, scheduled.stop)):
        fit_in_training(session, state.step, progress)
        take_step(session, batch, state.step, numbers)
        if state.step == begun:
            require_same_state(session.method, session.layout, session.optimizer)
        state = replace(state, step=state.step + 1)
        if state.step % per_epoch == 0 or state.step % every == 0 or state.step in (stop, scheduled.stop):
            numbers.look()  # before anything is validated or saved
        if state.step % per_epoch == 0:
            state = _validate(session, run, state, journal, scheduled)
            _measure_distances(session, state.step, journal)
        done = 1
        if _is_out_of_patience(session, state):
            done += scheduled.stop - state.step
            state = replace(state, step=scheduled.stop)
        if state.step == scheduled.stop:
            _keep_window(session, run, state, journal, scheduled, progress)
        if state.step % every == 0 or state.step in (stop, scheduled.stop):
            _save(session, run, state, journal)
        advance(done, note=_note(state, numbers.last, session.config.schedule.keep))
        if state.step == scheduled.stop:
            break
    return state


def _start_phase(session: Session, run: RunDirectory, scheduled: ScheduledPhase, state: TrainState) -> TrainState:
    """Start a later phase. It depends only on saved weights, so resuming here repeats it exactly."""
    if scheduled.phase.from_best:
        before = session.phase_at(scheduled.start - 1)
        file = run.best_of(before.phase.name)
        restored_in_all(session, lambda: load_own_checkpoint(session, file))
    start_phase(scheduled, session.method, session.optimizer, session.config.run.seed)
    require_same_state(session.method, session.layout, session.optimizer)
    session.average.clear()
    return TrainState(step=state.step, best_step=state.step)  # the best accuracy so far belongs to another phase


def take_step(session: Session, batch: Batch, step: int, numbers: StepNumbers) -> None:
    """Take one step of training, and have its numbers written to the journal, now or at their next look."""
    config, started = session.config, time.perf_counter()
    scheduled, per_epoch = session.phase_at(step), config.schedule.steps_per_epoch
    reseed_global(config.run.seed, "step", step)
    lr = learning_rate(step, config.optimizer.lr, config.schedule, scheduled)
    set_learning_rate(session.optimizer, lr)
    session.method.train()
    with session.shared_out():
        loss = checked_loss(session.method.loss(batch, session.clock(step)), session.method)
        numbers.check(loss, step)
        session.optimizer.zero_grad(set_to_none=True)
        loss.total.backward()  # type: ignore[no-untyped-call]
    if session.sharing is not None:
        session.sharing.merge_step()
    if config.optimizer.clip_norm:
        torch.nn.utils.clip_grad_norm_(session.method.parameters(), config.optimizer.clip_norm)
    session.optimizer.step()
    session.average.update(session.method, scheduled, step)
    numbers.done(step // per_epoch, lr, time.perf_counter() - started)


def _validate(
    session: Session, run: RunDirectory, state: TrainState, journal: Journal, scheduled: ScheduledPhase
) -> TrainState:
    """Keep the weights with the best validation accuracy, averaged over source domains; test images take no part.

    Without validation images, and with schedule.keep=last, every epoch replaces the one before.
    """
    _require_sound(session, state.step)
    keeps_last = session.config.schedule.keep == "last"
    with session.average.applied(session.method):
        table = predict_split(session, "val") if len(session.rows("val")) else None
        result = validation_accuracy(table, session.task) if table is not None else {}
        accuracy = result.get("accuracy")
        best = accuracy is None or keeps_last or accuracy > state.best_accuracy
        if best:
            state = replace(state, best_accuracy=accuracy or 0.0, best_step=state.step)
            _keep_weights(session, run, state, scheduled)
    if table is not None and isinstance(session.average, WeightWindow):
        session.average.observe(validation_loss(table, session.task))
    if accuracy is not None:
        epoch = state.step // session.config.schedule.steps_per_epoch - 1
        journal.validation(state.step, epoch, accuracy, result["per_domain"], best)
    return state


def _keep_window(
    session: Session,
    run: RunDirectory,
    state: TrainState,
    journal: Journal,
    scheduled: ScheduledPhase,
    progress: Progress,
) -> None:
    """With SWAD, a phase ends with the mean of the weights over its window, where validation found one."""
    if not isinstance(session.average, WeightWindow):
        return
    with session.average.result_applied(session.method) as found:
        if found:
            estimate_statistics(session, scheduled, progress)
            _keep_weights(session, run, replace(state, best_step=state.step), scheduled)
    journal.window(state.step, found)
    if not found and session.ranks.first:
        after = session.config.averaging.start_patience - 1
        following = "epoch" if after == 1 else f"{after} epochs"
        warnings.warn(
            f"SWAD found no window of epochs in the phase '{scheduled.phase.name}', so that no weights of it were "
            f"averaged: no epoch had a lower validation loss than the {following} after it. The weights with the best "
            "validation accuracy are kept. Lower averaging.start_patience, train longer, or use averaging.name=ema.",
            LtdsWarning,
            stacklevel=2,
        )


def _keep_weights(session: Session, run: RunDirectory, state: TrainState, scheduled: ScheduledPhase) -> None:
    """Save the weights as the best of a phase."""
    if session.ranks.first:
        file = run.best_checkpoint if scheduled.last else run.best_of(scheduled.phase.name)
        save_checkpoint(file, session.method, None, state, session.identity)


def _is_out_of_patience(session: Session, state: TrainState) -> bool:
    """Whether validation has not improved for `schedule.patience` epochs."""
    schedule = session.config.schedule
    return bool(schedule.patience) and state.step - state.best_step >= schedule.patience * schedule.steps_per_epoch


def _measure_distances(session: Session, step: int, journal: Journal) -> None:
    """Write the distances between source domains, after the epochs that ask for it."""
    every, epochs = session.config.run.frechet_every, step // session.config.schedule.steps_per_epoch
    if every and epochs % every == 0:
        distances = validation_distances(session)
        if distances:
            journal.frechet(step, epochs - 1, distances)


def _require_sound(session: Session, step: int) -> None:
    """Raise unless the weights can be kept: those that the method began with, finite, and the same in all ranks."""
    require_same_state(session.method, session.layout, session.optimizer)
    require_finite_weights(session.method, step)
    if session.sharing is not None:
        session.sharing.agree()


def _save(session: Session, run: RunDirectory, state: TrainState, journal: Journal) -> None:
    _require_sound(session, state.step)
    if not session.ranks.first:
        return
    journal.sync()  # a checkpoint must never be ahead of its journal, even after a power cut
    save_checkpoint(
        run.last_checkpoint,
        session.method,
        session.optimizer,
        state,
        session.identity,
        session.average.tensors,
        previous=run.previous_checkpoint,
    )


def _note(state: TrainState, loss: float, keep: str) -> str:
    """What the bar says: the last loss, and how good the weights are that would be kept now."""
    kept = f"{keep} val {100 * state.best_accuracy:.1f} %" if state.best_accuracy > 0 else ""
    return " · ".join(text for text in (f"loss {loss:.3f}" if math.isfinite(loss) else "", kept) if text)
