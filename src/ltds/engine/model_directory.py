"""A model directory: model.safetensors (weights) and model.json (all the rest). It needs no dataset and no run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

import ltds
from ltds.core.errors import CheckpointError
from ltds.core.files import write_bytes, write_json
from ltds.core.task import Task
from ltds.core.tensors import packed
from ltds.engine.config import as_stored, resolve
from ltds.engine.model_record import FORMAT, ModelRecord
from ltds.engine.preprocessing import FrozenPreprocessing
from ltds.engine.stored_model import StoredModel, checked_scores
from ltds.nn.backbones import least_numbers
from ltds.nn.libraries import library_of
from ltds.semantics.embeddings import ClassEmbeddings

WEIGHTS = "model.safetensors"
FROZEN_WEIGHTS = "frozen.safetensors"  # of the network that prepares images, where there is one
DESCRIPTION = "model.json"
EMBEDDINGS = "class_embeddings"  # next to the tensors of the method, whose names start with METHOD
METHOD = "method."


def is_model_directory(path: Path) -> bool:
    return (path / WEIGHTS).is_file()


def model_description(model: StoredModel) -> dict[str, Any]:
    """The content of model.json: plain values, no path of the machine that trained the model."""
    task = model.task.to_dict()
    classes = task.pop("classes")
    embeddings = model.embeddings
    return {
        "format": FORMAT,
        "ltds": ltds.__version__,
        "classes": classes,
        "open_classes": [classes[c] for c in model.task.open_classes],
        "preprocessing": _without_weights_path(model.record.preprocessing.to_dict()),
        "unknown": asdict(model.record.unknown),
        "training": {**task, "checksum": model.data_identity},
        "settings": _without_paths(model.config.to_dict()),
        "embeddings": None
        if embeddings is None
        else {"names": list(embeddings.names), "provenance": dict(embeddings.provenance)},
        "scores": model.scores,
    }


def write_description(folder: Path, model: StoredModel) -> None:
    write_json(folder / DESCRIPTION, model_description(model))


def write_weights(folder: Path, method: nn.Module, model: StoredModel) -> None:
    """Parameters, buffers and class embeddings in one file, a frozen network in another; reading them runs no code."""
    tensors = {f"{METHOD}{name}": value for name, value in method.state_dict().items()}
    if model.embeddings is not None:
        tensors[EMBEDDINGS] = model.embeddings.vectors
    write_bytes(folder / WEIGHTS, save(packed(tensors), metadata={"format": "pt"}))
    if isinstance(model.record.preprocessing, FrozenPreprocessing):
        model.record.preprocessing.network.save(folder / FROZEN_WEIGHTS)


def read_model_directory(
    folder: Path, device: torch.device, trust: Iterable[str] = ()
) -> tuple[StoredModel, dict[str, Tensor]]:
    """What `write_description` and `write_weights` wrote: the model, and the tensors of its method by name.

    `trust`: modules outside ltds that the model needs and that may be imported.
    """
    content, tensors = _read_json(folder / DESCRIPTION), _read_tensors(folder / WEIGHTS)
    record = ModelRecord.from_dict(content, folder / DESCRIPTION, folder / FROZEN_WEIGHTS, device)
    try:
        training = dict(content["training"])
        data = str(training.pop("checksum"))
        task = Task.from_dict({**training, "classes": content["classes"]})
        embeddings = _embeddings(content["embeddings"], tensors)
        settings, scores = dict(content["settings"]), checked_scores(content["scores"])
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(
            f"Expected '{folder}' to be a model directory of ltds, but got {type(error).__name__}: {error}. "
            "Export the model again."
        ) from error
    stored = StoredModel(resolve(as_stored(settings), trust=trust), task, record, embeddings, scores, data)
    return stored, {name.removeprefix(METHOD): value for name, value in tensors.items() if name.startswith(METHOD)}


def load_exported_weights(folder: Path, method: nn.Module, tensors: dict[str, Tensor]) -> None:
    try:
        method.load_state_dict(tensors)
    except RuntimeError as error:
        raise CheckpointError(
            f"Expected '{folder / WEIGHTS}' to fit the settings in {DESCRIPTION}, but got: {error}. "
            "Both files must come from one export."
        ) from error


def require_numbers(folder: Path, stored: StoredModel, tensors: dict[str, Tensor]) -> None:
    """Raise where the settings describe a network that is too large for the weights: it could take any memory."""
    preprocessing = stored.record.preprocessing
    frozen = preprocessing.network.module.state_dict() if isinstance(preprocessing, FrozenPreprocessing) else {}
    numbers = sum(tensor.numel() for tensor in (*tensors.values(), *frozen.values()))
    least = least_numbers(stored.config.backbone, preprocessing.input_dim)
    if numbers < least:
        raise CheckpointError(
            f"Expected '{folder / WEIGHTS}' to fit the settings in {DESCRIPTION}, but got {numbers:,} numbers for a "
            f"backbone that has more than {least:,}. Both files must come from one export."
        )


def _embeddings(described: dict[str, Any] | None, tensors: dict[str, Tensor]) -> ClassEmbeddings | None:
    if described is None:
        return None
    return ClassEmbeddings(tuple(described["names"]), tensors[EMBEDDINGS], dict(described["provenance"]))


def _without_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without paths, which mean nothing on another machine; a file of weights keeps its name."""
    portable = deepcopy(settings)
    portable["data"] |= {"root": "", "features": ""}
    portable["semantics"]["table"] = ""
    _shorten(portable["backbone"])
    return portable


def _without_weights_path(preprocessing: dict[str, Any]) -> dict[str, Any]:
    portable = deepcopy(preprocessing)
    if "network" in portable:
        _shorten(portable["network"]["backbone"])
    return portable


def _shorten(backbone: dict[str, Any]) -> None:
    """Keep only the last part of paths: of the file of weights, and of the folder that describes the network."""
    backbone["weights"] = Path(backbone["weights"]).name
    if library_of(backbone["name"]) == "hf":
        backbone["name"] = f"hf:{Path(backbone['name'].partition(':')[2]).name}"


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes(), parse_constant=_finite, parse_float=_finite)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"Expected '{file}' to describe the model next to it, but it could not be read: {error}. "
            "Export the model again."
        ) from error
    if not isinstance(content, dict):
        raise CheckpointError(f"Expected '{file}' to hold a JSON object, but got a {type(content).__name__}.")
    return content


def _finite(text: str) -> float:
    """A number of the file; Python also reads NaN and 1e999, which nothing in a model can be and JSON cannot hold."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text}")
    return value


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"Expected '{file}' to hold the weights of a model, but it could not be read: {error}. "
            "Export the model again."
        ) from error
