"""What a run leaves for everyone after it: predictions, and the metrics made from them."""

from __future__ import annotations

from typing import Any

from ltds.core.progress import SILENT, Progress
from ltds.core.runs import RunDirectory
from ltds.engine.assemble import Session
from ltds.evaluation.predict import predict
from ltds.evaluation.protocol import evaluate
from ltds.evaluation.table import PredictionTable


def predict_split(session: Session, split: str, progress: Progress = SILENT) -> PredictionTable:
    """The model's predictions for a split, in evaluation mode."""
    session.method.eval()
    with progress.track(f"Predicting {split}", len(session.rows(split))) as advance:

        def counted() -> Any:
            for images, rows in session.images(split):
                yield images, rows
                advance(len(rows))

        return predict(session.method.predict, counted(), session.manifest.labels, session.manifest.domain_ids)


def write_metrics(run: RunDirectory) -> dict[str, Any]:
    """Compute metrics.json from the stored predictions: no model, no images."""
    val = run.predictions_file("val")
    validation = PredictionTable.load(val) if val.is_file() else None
    metrics = evaluate(PredictionTable.load(run.predictions_file("test")), validation, run.read_task())
    metrics["choices"]["model"] = _model_choice(run, metrics["choices"]["model"])
    run.write_metrics(metrics)
    return metrics


def _model_choice(run: RunDirectory, choice: dict[str, Any]) -> dict[str, Any]:
    journal = run.read_journal()
    best = [row for row in journal if row["kind"] == "validation" and row["best"]]
    if not best:
        return {"rule": "the last step, as there are no validation images", "split": None, "step": journal[-1]["step"]}
    return {**choice, "step": best[-1]["step"], "validation_accuracy": best[-1]["accuracy"]}
