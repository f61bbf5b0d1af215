"""The metrics of a run directory, computed from its stored predictions: no model, no images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ltds.core.runs import RunDirectory
from ltds.evaluation.protocol import compute_metrics
from ltds.evaluation.table import PredictionTable


def evaluate(run: RunDirectory | Path | str) -> dict[str, Any]:
    """Compute the metrics of a run again, write them to its metrics.json, and return them."""
    directory = run if isinstance(run, RunDirectory) else RunDirectory(Path(run))
    task = directory.read_task()  # first: the error says that this is no run
    val_file = directory.predictions_file("val")
    val = PredictionTable.load(val_file) if val_file.is_file() else None
    metrics = compute_metrics(PredictionTable.load(directory.predictions_file("test")), val, task)
    metrics["choices"]["model"] = _model_choice(directory, metrics["choices"]["model"], val is not None)
    directory.write_metrics(metrics)
    return metrics


def _model_choice(run: RunDirectory, choice: dict[str, Any], validated: bool) -> dict[str, Any]:
    """Which step's weights were kept, according to the journal; None if the journal was lost."""
    journal = run.read_journal()
    if not validated:
        last = journal[-1]["step"] if journal else None
        return {"rule": "the last step, as there are no validation images", "split": None, "step": last}
    best = [row for row in journal if row.get("kind") == "validation" and row.get("best")]
    kept = best[-1] if best else {}
    if run.config_file.is_file() and run.read_config().get("schedule", {}).get("keep") == "last":
        choice = {"rule": "the last step, as schedule.keep=last asks", "split": None}
    return {**choice, "step": kept.get("step"), "validation_accuracy": kept.get("accuracy")}
