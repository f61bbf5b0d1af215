"""The metrics of a run directory, computed from its stored predictions: no model, no images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.evaluation.choices import WINDOW_RULE
from ltds.evaluation.features import FeatureTable
from ltds.evaluation.naming import open_name_numbers, stored_vectors
from ltds.evaluation.openset import OpenSetScores
from ltds.evaluation.protocol import compute_metrics
from ltds.evaluation.table import PredictionTable

_NONE = np.empty(0, np.int64)
_NO_FEATURES = FeatureTable(np.empty((0, 0), np.float16), _NONE, _NONE, _NONE)


def evaluate(run: RunDirectory | Path | str) -> dict[str, Any]:
    """Compute the metrics of a run again, write them to its metrics.json, and return them."""
    directory = run if isinstance(run, RunDirectory) else RunDirectory(Path(run))
    task = directory.read_task()  # first: the error says that this is not a run
    val_file = directory.predictions_file("val")
    val = PredictionTable.load(val_file) if val_file.is_file() else None
    test = PredictionTable.load(directory.predictions_file("test"))
    metrics = compute_metrics(test, val, task)
    metrics["open_names"] = _open_names(directory, test, task, metrics["choices"]["h_fixed"])
    metrics["summary"]["open_name_accuracy"] = metrics["open_names"]["accuracy"]
    validated = (metrics["validation"] or {}).get("accuracy") is not None
    metrics["choices"]["model"] = _model_choice(directory, metrics["choices"]["model"], validated)
    directory.write_metrics(metrics)
    return metrics


def _open_names(run: RunDirectory, test: PredictionTable, task: Task, fixed: dict[str, Any]) -> dict[str, Any]:
    """How often an unknown image gets the right name, from stored features and class embeddings."""
    features = FeatureTable.load(run.features_file) or _NO_FEATURES
    unknown = _NONE
    if fixed["threshold"] is not None:
        scores = OpenSetScores.of_known_classes(test.logits, test.labels, task.open_classes, fixed["temperature"])
        unknown = test.rows[scores.confidence < fixed["threshold"]]
    return open_name_numbers(features, stored_vectors(run.embeddings_file), task, unknown)


def _model_choice(run: RunDirectory, choice: dict[str, Any], validated: bool) -> dict[str, Any]:
    """Which step's weights were kept, according to the journal; None if it was lost, or for a mean of steps."""
    journal = run.read_journal()
    if not validated:
        last = journal[-1]["step"] if journal else None
        return {
            "rule": "the last step, as there are no validation images of known classes",
            "split": None,
            "step": last,
        }
    config = run.read_config() if run.config_file.is_file() else {}
    if config.get("schedule", {}).get("keep") == "last":
        choice = {"rule": "the last step, as schedule.keep=last asks", "split": None}
    if config.get("averaging", {}).get("name") == "swad":
        windows = [bool(row.get("found")) for row in journal if row.get("kind") == "window"]  # one for each phase
        if not windows or windows[-1]:  # older journals do not say whether there was one
            otherwise = "" if windows else f"; if it found none: {choice['rule']}"
            return {"rule": WINDOW_RULE + otherwise, "split": "val", "step": None, "validation_accuracy": None}
    best = [row for row in journal if row.get("kind") == "validation" and row.get("best")]
    kept = best[-1] if best else {}
    return {**choice, "step": kept.get("step"), "validation_accuracy": kept.get("accuracy")}
