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
from ltds.engine.checkpoint import Standing, load_average, load_checkpoint, save_checkpoint
from ltds.engine.features import domain_distances, sample_features
from ltds.engine.journal import Journal
from ltds.engine.optim import learning_rate
from ltds.engine.outcome import conclude, predict_split, write_metrics
from ltds.engine.phases import Stretch, enter, freeze
from ltds.evaluation.protocol import validate


def train(session: Session, run: RunDirectory, progress: Progress = SILENT, stop_after: int | None = None) -> None:
    """Train from where the run stands to its end, then evaluate. Afterwards the run is DONE.

    `stop_after`: return once this many steps are done and saved, as if the machine had been switched off.
    """
    standing = restore(session, run)
    stop = min(session.steps, stop_after or session.steps)
    events = session.config.run.tensorboard
    with (
        Journal(run, standing.step, events) as journal,
        progress.track("Training", session.steps, standing.step) as advance,
    ):
        while standing.step < stop:
            standing = _train_phase(session, run, standing, stop, journal, advance)
    if stop == session.steps:
        finish(session, run, progress)


def _train_phase(
    session: Session, run: RunDirectory, standing: Standing, stop: int, journal: Journal, advance: Advance
) -> Standing:
    """Take the steps of the phase that the run stands in, from its start or from the middle."""
    stretch = session.stretch(standing.step)
    if standing.step == stretch.start > 0:
        standing = _enter(session, run, stretch, standing)
    freeze(session.method, stretch.phase, session.learnable)
    per_epoch = session.config.schedule.steps_per_epoch
    every = session.config.run.checkpoint_every or per_epoch
    for batch in session.batches(standing.step, min(stop, stretch.stop)):
        loss = take_step(session, batch, standing.step, journal)
        standing = replace(standing, step=standing.step + 1)
        if standing.step % per_epoch == 0:
            standing = _validate(session, run, standing, journal, stretch)
            _measure(session, standing.step, journal)
        if standing.step % every == 0 or standing.step in (stop, stretch.stop):
            _save(session, run, standing, journal)
        advance(note=_note(standing, loss))
    return standing


def _enter(session: Session, run: RunDirectory, stretch: Stretch, standing: Standing) -> Standing:
    """Begin a later phase. A run that stopped just here does the same again: nothing but the weights goes in."""
    if stretch.phase.from_best:
        before = session.stretch(stretch.start - 1)
        load_checkpoint(run.best_of(before.phase.name), session.method, identity=session.identity)
    enter(stretch, session.method, session.optimizer, session.config.run.seed)
    session.average.clear()
    return Standing(step=standing.step)  # the best so far was the best of another phase


def restore(session: Session, run: RunDirectory) -> Standing:
    """Put the session where the run's last checkpoint left it; a run without one starts at step 0."""
    if not run.last_checkpoint.is_file():
        return Standing()
    standing = load_checkpoint(run.last_checkpoint, session.method, session.optimizer, session.identity)
    session.average.tensors = load_average(run.last_checkpoint, session.method)
    return standing


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
    stretch, per_epoch = session.stretch(step), config.schedule.steps_per_epoch
    clock = Clock(config.run.seed, step - stretch.start, stretch.steps, per_epoch, stretch.phase.name)
    reseed_global(config.run.seed, "step", step)
    lr = learning_rate(step, config.optimizer.lr, config.schedule, stretch)
    for group in session.optimizer.param_groups:
        group["lr"] = lr
    session.method.train()
    loss = session.method.loss(batch, clock)
    total, terms = _finite(loss, step)
    session.optimizer.zero_grad(set_to_none=True)
    loss.total.backward()  # type: ignore[no-untyped-call]
    session.optimizer.step()
    session.average.update(session.method, stretch, step)
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


def _validate(session: Session, run: RunDirectory, standing: Standing, journal: Journal, stretch: Stretch) -> Standing:
    """Keep the weights with the best mean over source domains of validation accuracy: never looks at test images.

    Without validation images every epoch counts as the best so far, so that the last one is kept.
    """
    _refuse_nan(session, standing.step)
    with session.average.applied(session.method):
        found = validate(predict_split(session, "val"), session.task) if len(session.rows("val")) else {}
        accuracy = found.get("accuracy")
        best = accuracy is None or accuracy > standing.best_accuracy
        if best:
            standing = replace(standing, best_accuracy=accuracy or 0.0, best_step=standing.step)
            file = run.best_checkpoint if stretch.last else run.best_of(stretch.phase.name)
            save_checkpoint(file, session.method, None, standing, session.identity)
    if accuracy is not None:
        epoch = standing.step // session.config.schedule.steps_per_epoch - 1
        journal.validation(standing.step, epoch, accuracy, found["per_domain"], best)
    return standing


def _measure(session: Session, step: int, journal: Journal) -> None:
    """Write how far the source domains lie apart, after the epochs that ask for it."""
    every, epochs = session.config.run.frechet_every, step // session.config.schedule.steps_per_epoch
    if every and epochs % every == 0:
        distances = domain_distances(session)
        if distances:
            journal.frechet(step, epochs - 1, distances)


def _save(session: Session, run: RunDirectory, standing: Standing, journal: Journal) -> None:
    _refuse_nan(session, standing.step)
    journal.sync()  # a checkpoint must never be ahead of its journal, even after a power cut
    average = session.average.tensors
    save_checkpoint(run.last_checkpoint, session.method, session.optimizer, standing, session.identity, average)


def _refuse_nan(session: Session, step: int) -> None:
    """A finite loss can still have an infinite gradient: never save, nor select, what it has spoilt."""
    for name, value in session.method.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise TrainingError(
                f"Expected finite weights after step {step}, but '{name}' holds NaN or infinity. The last checkpoint "
                "is kept: train anew with a smaller learning rate (--set optimizer.lr=...) and another --out."
            )


def _note(standing: Standing, loss: float) -> str:
    best = f" · best val {100 * standing.best_accuracy:.1f} %" if standing.best_accuracy > 0 else ""
    return f"loss {loss:.3f}{best}"
