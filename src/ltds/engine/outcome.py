"""What a run leaves when training ends: predictions, the metrics made from them, and what a model needs to be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch
from ltds.engine.checkpoint import load_checkpoint, save_checkpoint
from ltds.engine.features import sample_features
from ltds.engine.model_record import model_record
from ltds.engine.session import Session
from ltds.evaluation.predict import predict
from ltds.evaluation.protocol import evaluate
from ltds.evaluation.table import PredictionTable


def finish(session: Session, run: RunDirectory, progress: Progress = SILENT) -> None:
    """Predict validation and test with the best weights of the last phase, write the metrics, mark the run as done."""
    best = load_checkpoint(run.best_checkpoint, session.method, identity=session.identity)
    if session.method.concludes:
        fit_after_training(session, progress)
        save_checkpoint(run.best_checkpoint, session.method, None, best, session.identity)
    for split in ("val", "test"):
        if len(session.rows(split)):
            predict_split(session, split, progress).save(run.predictions_file(split))
    sample_features(session, progress).save(run.features_file)
    metrics = write_metrics(run)
    run.write_model(model_record(session, metrics))
    run.mark_done()


def predict_split(session: Session, split: str, progress: Progress = SILENT) -> PredictionTable:
    """The model's predictions for a split, in evaluation mode."""
    session.method.eval()
    with progress.track(f"Predicting {split}", len(session.rows(split))) as advance:

        def counted() -> Any:
            for images, rows in session.images(split):
                yield images, rows
                advance(len(rows))

        return predict(session.method.predict, counted(), session.manifest.labels, session.manifest.domain_ids)


def fit_after_training(session: Session, progress: Progress = SILENT) -> None:
    """Let the method fit what needs no gradient, on training and validation images without augmentation."""
    total = len(session.rows("train")) + len(session.rows("val"))
    session.method.eval()
    with progress.track("Fitting after training", total) as advance, torch.no_grad():

        def counted(split: str) -> Iterator[Batch]:
            for batch in session.labelled(split):
                yield batch
                advance(len(batch))

        session.method.conclude(counted("train"), counted("val"))


def write_metrics(run: RunDirectory) -> dict[str, Any]:
    """Compute metrics.json from the stored predictions: no model, no images."""
    val = run.predictions_file("val")
    validation = PredictionTable.load(val) if val.is_file() else None
    metrics = evaluate(PredictionTable.load(run.predictions_file("test")), validation, run.read_task())
    metrics["choices"]["model"] = _model_choice(run, metrics["choices"]["model"], validation is not None)
    run.write_metrics(metrics)
    return metrics


def _model_choice(run: RunDirectory, choice: dict[str, Any], validated: bool) -> dict[str, Any]:
    """Which step's weights were kept, according to the journal; None where the journal was lost."""
    journal = run.read_journal()
    if not validated:
        last = journal[-1]["step"] if journal else None
        return {"rule": "the last step, as there are no validation images", "split": None, "step": last}
    best = [row for row in journal if row.get("kind") == "validation" and row.get("best")]
    kept = best[-1] if best else {}
    return {**choice, "step": kept.get("step"), "validation_accuracy": kept.get("accuracy")}
