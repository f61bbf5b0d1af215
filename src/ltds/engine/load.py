"""From a run directory to its model: the one way there, for predictions, exports and figures. It reads no dataset."""

from __future__ import annotations

from pathlib import Path

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.engine.build import build_method
from ltds.engine.checkpoint import load_checkpoint
from ltds.engine.config import resolve
from ltds.engine.device import choose_device
from ltds.engine.model import Model
from ltds.engine.model_record import ModelRecord
from ltds.semantics.embeddings import ClassEmbeddings


def load_model(path: str | Path, *, device: str = "auto") -> Model:
    """The model of a finished run, ready to predict: `ltds.load_model("runs/a").predict(["a.jpg"])`.

    `device`: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
    """
    run = RunDirectory(Path(path))
    config, task = resolve(run.read_config()), run.read_task()
    _require_finished(run)
    record = ModelRecord.from_dict(run.read_model(), run.model_file)
    embeddings = ClassEmbeddings.from_table(run.embeddings_file) if run.embeddings_file.is_file() else None
    target = choose_device(device)
    dim = record.preprocessing.input_dim
    method = build_method(config, task, embeddings, target, input_dim=dim, pretrained=False)
    load_checkpoint(run.best_checkpoint, method)
    return Model(method, task, record, target)


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
