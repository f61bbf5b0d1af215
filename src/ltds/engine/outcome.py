"""What a run leaves when training ends: predictions, the metrics made from them, and what a model needs to be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.core.types import Batch
from ltds.engine.checkpoint import load_checkpoint, save_checkpoint
from ltds.engine.features import sample_features, store_thumbnails
from ltds.engine.model_record import model_record
from ltds.engine.session import Session
from ltds.evaluation.predict import predict
from ltds.evaluation.run_metrics import evaluate
from ltds.evaluation.table import PredictionTable


def finish(session: Session, run: RunDirectory, progress: Progress = SILENT) -> None:
    """Predict validation and test with the best weights of the last phase, write the metrics, mark the run as done."""
    best = load_checkpoint(run.best_checkpoint, session.method, identity=session.identity)
    if session.method.fits_after_training:
        fit_after_training(session, progress)
        save_checkpoint(run.best_checkpoint, session.method, None, best, session.identity)
    for split in ("val", "test"):
        if len(session.rows(split)):
            predict_split(session, split, progress).save(run.predictions_file(split))
    features = sample_features(session, progress)
    features.save(run.features_file)
    store_thumbnails(session, features, run)
    metrics = evaluate(run)
    run.write_model(model_record(session, metrics))
    run.mark_done()
    run.previous_checkpoint.unlink(missing_ok=True)


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

        session.method.fit_after_training(counted("train"), counted("val"))
