"""The loop: steps, journal, validation, checkpoints, and the evaluation at the end. One for every method."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import torch

from ltds.core.errors import TrainingError
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import reseed_global
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch, Clock, StepLoss
from ltds.engine.assemble import Session
from ltds.engine.checkpoint import Standing, load_checkpoint, save_checkpoint
from ltds.engine.journal import Journal
from ltds.engine.optim import learning_rate
from ltds.engine.outcome import predict_split, write_metrics
from ltds.evaluation.protocol import validate


def train(session: Session, run: RunDirectory, progress: Progress = SILENT, stop_after: int | None = None) -> None:
    """Train from where the run stands to its end, then evaluate. Afterwards the run is DONE.

    `stop_after`: return once this many steps are done and saved, as if the machine had been switched off.
    """
    schedule = session.config.schedule
    standing = restore(session, run)
    stop = min(schedule.steps, stop_after or schedule.steps)
    every = session.config.run.checkpoint_every or schedule.steps_per_epoch
    with Journal(run, standing.step) as journal, progress.track("Training", schedule.steps, standing.step) as advance:
        for batch in session.loader.batches(standing.step, stop):
            loss = take_step(session, batch, standing.step, journal)
            standing = replace(standing, step=standing.step + 1)
            if standing.step % schedule.steps_per_epoch == 0:
                standing = _validate(session, run, standing, journal)
            if standing.step % every == 0 or standing.step == stop:
                _save(session, run, standing, journal)
            advance(note=_note(standing, loss))
    if stop == schedule.steps:
        finish(session, run, progress)


def restore(session: Session, run: RunDirectory) -> Standing:
    """Put the session where the run's last checkpoint left it; a run without one starts at step 0."""
    if not run.last_checkpoint.is_file():
        return Standing()
    return load_checkpoint(run.last_checkpoint, session.method, session.optimizer, session.identity)


def finish(session: Session, run: RunDirectory, progress: Progress = SILENT) -> None:
    """Predict validation and test with the best weights, write the metrics, mark the run as done."""
    load_checkpoint(run.best_checkpoint, session.method, identity=session.identity)
    for split in ("val", "test"):
        if len(session.rows(split)):
            predict_split(session, split, progress).save(run.predictions_file(split))
    write_metrics(run)
    run.mark_done()


def take_step(session: Session, batch: Batch, step: int, journal: Journal) -> float:
    """One step of training, written to the journal; its loss."""
    config, started = session.config, time.perf_counter()
    clock = Clock(config.run.seed, step, config.schedule.steps, config.schedule.steps_per_epoch)
    reseed_global(config.run.seed, "step", step)
    lr = learning_rate(step, config.optimizer.lr, config.schedule)
    for group in session.optimizer.param_groups:
        group["lr"] = lr
    session.method.train()
    loss = session.method.loss(batch, clock)
    total, terms = _finite(loss, step)
    session.optimizer.zero_grad(set_to_none=True)
    loss.total.backward()  # type: ignore[no-untyped-call]
    session.optimizer.step()
    journal.step(step + 1, clock.epoch, lr, total, terms, time.perf_counter() - started)
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


def _validate(session: Session, run: RunDirectory, standing: Standing, journal: Journal) -> Standing:
    """Keep the weights with the best mean over source domains of validation accuracy: never looks at test images.

    Without validation images every epoch counts as the best so far, so that the last one is kept.
    """
    _refuse_nan(session, standing.step)
    found = validate(predict_split(session, "val"), session.task) if len(session.rows("val")) else {}
    accuracy = found.get("accuracy")
    best = accuracy is None or accuracy > standing.best_accuracy
    if best:
        standing = replace(standing, best_accuracy=accuracy or 0.0, best_step=standing.step)
        save_checkpoint(run.best_checkpoint, session.method, None, standing, session.identity)
    if accuracy is not None:
        epoch = standing.step // session.config.schedule.steps_per_epoch - 1
        journal.validation(standing.step, epoch, accuracy, found["per_domain"], best)
    return standing


def _save(session: Session, run: RunDirectory, standing: Standing, journal: Journal) -> None:
    _refuse_nan(session, standing.step)
    journal.sync()  # a checkpoint must never be ahead of its journal, even after a power cut
    save_checkpoint(run.last_checkpoint, session.method, session.optimizer, standing, session.identity)


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
