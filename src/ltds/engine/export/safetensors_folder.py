"""Export to safetensors: a model directory that `load_model` reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.trust import code_needed
from ltds.engine.export.comparison import RunExport
from ltds.engine.export.graph import PredictionGraph
from ltds.engine.load import load_model
from ltds.engine.model import Model
from ltds.engine.model_directory import write_description, write_weights
from ltds.engine.seen_images import seen_by, write_fingerprints


def write(folder: Path, model: Model, inputs: Tensor) -> RunExport:
    """Write weights, description and what tells the images that it has seen, and load the model again."""
    write_weights(folder, model.method, model.stored)
    write_description(folder, model.stored)
    if (seen := seen_by(model)) is not None:
        write_fingerprints(folder, seen)
    loaded = load_model(folder, device="cpu", trust=code_needed(model.stored.config.to_dict()))
    graph = PredictionGraph(loaded)

    @torch.inference_mode()
    def run(batch: Tensor) -> Sequence[NDArray[np.float32]]:
        return [output.float().numpy() for output in graph(batch)]

    return run
