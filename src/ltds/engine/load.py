"""From a run or a model directory to its model: the one way there, for predictions and exports. It reads no dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from ltds.core.errors import CheckpointError
from ltds.core.runs import FINAL_RUN, SERIES_FILE, RunDirectory
from ltds.engine.build import build_method
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.config import as_stored, resolve
from ltds.engine.device import choose_device
from ltds.engine.model import Model
from ltds.engine.model_directory import (
    is_model_directory,
    load_exported_weights,
    read_model_directory,
    require_numbers,
)
from ltds.engine.model_record import ModelRecord
from ltds.engine.precision import has_bfloat16, recorded_precision
from ltds.engine.stored_model import StoredModel, domain_scores, scores_of
from ltds.methods.base import Method
from ltds.nn.precision import compute_in
from ltds.semantics.embeddings import ClassEmbeddings


def load_model(path: str | Path, *, device: str = "auto", trust: Iterable[str] = ()) -> Model:
    """The model of a finished run or of a model directory: `ltds.load_model("runs/a").predict(["a.jpg"])`.

    Args:
        path: The run or the model directory.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        trust: Modules outside ltds that the model needs and that may be imported, as in ["my_package.methods"].
    """
    folder, target = Path(path), choose_device(device)
    if is_model_directory(folder):
        stored, tensors = read_model_directory(folder, target, trust)
        require_numbers(folder, stored, tensors)
        method = _build(stored, target)
        load_exported_weights(folder, method, tensors)
        return Model(method, stored, target, folder)
    run = RunDirectory(folder)
    stored = _read_run(run, target, trust)
    method = _build(stored, target)
    load_checkpoint(run.best_checkpoint, method)
    if recorded_precision(run) == "bfloat16" and has_bfloat16(target):
        compute_in("bfloat16", method)  # as in the evaluation of the run; where it is imitated, float32 is far faster
    return Model(method, stored, target, folder)


def _build(stored: StoredModel, device: torch.device) -> Method:
    dim = stored.record.preprocessing.input_dim
    try:
        return build_method(stored.config, stored.task, stored.embeddings, device, input_dim=dim, pretrained=False)
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not re.search("alloc|out of memory|overflow", str(error)):
            raise
        raise CheckpointError(
            "Expected the settings of the model to describe a network that fits into the memory of this machine, but "
            f"got: {error}. Restore them if they were changed, or use a machine with more memory."
        ) from error


def _read_run(run: RunDirectory, device: torch.device, trust: Iterable[str]) -> StoredModel:
    _refuse_other_exports(run)
    config, task = resolve(as_stored(run.read_config()), trust=trust), run.read_task()
    _require_finished(run)
    record = ModelRecord.from_dict(run.read_model(), run.model_file, run.frozen_weights, device)
    embeddings = ClassEmbeddings.from_table(run.embeddings_file) if run.embeddings_file.is_file() else None
    data = str(run.read_environment().get("data", "")) if run.environment_file.is_file() else ""
    return StoredModel(config, task, record, embeddings, _scores(run), data)


def _scores(run: RunDirectory) -> dict[str, Any]:
    """The test results of the run; none where they cannot be read, because a prediction does not need them."""
    try:
        return {**scores_of(run.read_metrics()), "unseen": _unseen(run)}
    except (CheckpointError, LookupError, TypeError):
        return {}


def _unseen(run: RunDirectory) -> dict[str, Any]:
    """Of the last run of a series: how each of the others did on the domain that it had not seen."""
    folder = run.path.absolute()
    names = _runs_of_series(folder.parent) if folder.name == FINAL_RUN else []
    found = {}
    for other in (RunDirectory(folder.parent / name) for name in names):
        with suppress(CheckpointError, LookupError, TypeError):  # damaged: the others tell something, too
            if other.done and (domain := other.read_task().held_out) is not None:
                found[domain] = domain_scores(other.read_metrics())[domain]
    return found


def _runs_of_series(folder: Path) -> list[str]:
    """The names of its runs: the folder may hold others, which were trained in another way."""
    try:
        names = json.loads((folder / SERIES_FILE).read_text(encoding="utf-8"))["runs"]
        return [name for name in names if Path(name).name == name]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # no series, or a damaged list
        return []


def _refuse_other_exports(run: RunDirectory) -> None:
    if run.model_file.is_file() and not run.exists:
        raise CheckpointError(
            f"Expected '{run.path}' to be a run, or a model directory with a file 'model.safetensors', but it holds "
            "an export for other programs (ONNX or torch.export). Name the run, or export it to safetensors."
        )


def _require_finished(run: RunDirectory) -> None:
    if run.done and not run.model_file.is_file():
        raise CheckpointError(
            f"Expected '{run.path}' to hold a model.json, but an older version of ltds made this run, which did not "
            "save what a model needs. Train it again with this version."
        )
    if not run.done:
        raise CheckpointError(
            f"Expected '{run.path}' to be a finished run, but its training has not ended. Resume it first.",
            resume=run.path,
        )
