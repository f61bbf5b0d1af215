"""What a run leaves when training ends: predictions, the metrics made from them, and what a model needs to be used."""

from __future__ import annotations

from typing import Any

import torch

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.engine.agree import restored_in_all
from ltds.engine.checkpoint import save_checkpoint
from ltds.engine.features import sample_features, store_thumbnails
from ltds.engine.fitting import fit_after_training
from ltds.engine.fixed_state import require_same_state
from ltds.engine.model_record import model_record
from ltds.engine.restore import load_own_checkpoint
from ltds.engine.seen_images import seen_fingerprints, write_fingerprints
from ltds.engine.session import Session
from ltds.evaluation.predict import predict
from ltds.evaluation.run_metrics import evaluate
from ltds.evaluation.table import PredictionTable


def finish(session: Session, run: RunDirectory, progress: Progress = SILENT) -> None:
    """Predict validation and test with the best weights of the last phase, write the metrics, mark the run as done."""
    first = session.ranks.first
    best = restored_in_all(session, lambda: load_own_checkpoint(session, run.best_checkpoint))
    if session.method.fits_after_training:
        fit_after_training(session, progress)
        require_same_state(session.method, session.layout, session.optimizer)
        if first:
            save_checkpoint(run.best_checkpoint, session.method, None, best, session.identity)
    splits = [split for split in ("val", "test") if len(session.rows(split))]
    tables = {split: predict_split(session, split, progress) for split in splits}
    features = sample_features(session, progress)
    if not first:
        return
    for split, table in tables.items():
        table.save(run.predictions_file(split))
    features.save(run.features_file)
    store_thumbnails(session, features, tables.get("test"), run)
    metrics = evaluate(run)
    run.write_model(model_record(session, metrics))
    if (seen := seen_fingerprints(session.manifest, session.task, progress)) is not None:
        write_fingerprints(run.path, seen)
    run.mark_done()
    run.previous_checkpoint.unlink(missing_ok=True)


def predict_split(session: Session, split: str, progress: Progress = SILENT) -> PredictionTable:
    """The model's predictions for a split, in evaluation mode."""
    session.method.eval()
    rows = session.rows(split)
    mine = session.own(rows)
    labels, domains = session.manifest.labels, session.manifest.domain_ids
    with progress.track(f"Predicting {split}", len(mine)) as advance:

        def counted() -> Any:
            for images, ids in session.images_of(mine):
                yield images, ids
                advance(len(ids))

        table = predict(session.method.predict, counted(), labels, domains, len(session.task.classes))
    if len(mine) == len(rows):
        return table
    logits = session.of_all(torch.from_numpy(table.logits), rows).numpy()
    return PredictionTable(logits, labels[rows], domains[rows], rows)
