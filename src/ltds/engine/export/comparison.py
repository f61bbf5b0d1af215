"""Whether an export computes the same as the model it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.rng import generator
from ltds.data.decode import ImageSource
from ltds.engine.export.graph import PredictionGraph, graph_preprocessing
from ltds.engine.model import Model
from ltds.engine.preprocessing import ImagePreprocessing

RunExport = Callable[[Tensor], Sequence[NDArray[np.float32]]]  # inputs (N,...) -> logits, probabilities, features
RANDOM_INPUTS = 5


def check_inputs(model: Model, images: Sequence[ImageSource]) -> Tensor:
    """(N,...) inputs of the network: these images, or random numbers as normalised images have them."""
    preprocessing = graph_preprocessing(model)
    if len(images):
        return preprocessing(images)
    if isinstance(preprocessing, ImagePreprocessing):
        size = preprocessing.transform.size
        shape: tuple[int, ...] = (RANDOM_INPUTS, 3, size, size)
    else:
        shape = (RANDOM_INPUTS, preprocessing.input_dim)
    return torch.randn(shape, generator=generator(0, "export/check", 0))


@torch.inference_mode()
def largest_difference(model: Model, run: RunExport, inputs: Tensor) -> float:
    """The largest |a - b| / max(1, |a|) over all outputs a of the model and b of the export.

    The first input is also given alone, because a graph may work for one batch size only.
    """
    graph = PredictionGraph(model)
    return max(
        _difference(ours.float().numpy(), theirs)
        for batch in (inputs, inputs[:1])
        for ours, theirs in zip(graph(batch), run(batch), strict=True)
    )


def _difference(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    """inf where the shapes differ, or where one value is NaN or infinite and the other is not."""
    if ours.shape != theirs.shape:
        return float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore"):
        relative = np.where(a == b, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(a)))
    return float(np.nan_to_num(relative, nan=np.inf).max(initial=0.0))
