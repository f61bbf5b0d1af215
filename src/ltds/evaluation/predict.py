"""From a model to a table of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from ltds.core.errors import TrainingError, expected
from ltds.core.types import Prediction
from ltds.evaluation.arrays import IntArray
from ltds.evaluation.table import PredictionTable

PredictionBatches = Iterable[tuple[Tensor, IntArray]]


@torch.inference_mode()
def predict(
    model: Callable[[Tensor], Prediction],
    batches: PredictionBatches,
    labels: IntArray,
    domains: IntArray,
    classes: int,
) -> PredictionTable:
    """Logits for every image of `batches`, pairs (images, row ids); `labels` and `domains` are indexed by row id."""
    logits, rows = [], []
    for images, ids in batches:
        logits.append(_checked(model, model(images), (len(ids), classes)).float().cpu().numpy())
        rows.append(ids)
    order = np.concatenate(rows)
    return PredictionTable(np.concatenate(logits), labels[order], domains[order], order)


def _checked(model: Callable[[Tensor], Prediction], said: object, shape: tuple[int, int]) -> Tensor:
    """The logits of a prediction, which may come from a user's method."""
    whose = getattr(model, "__qualname__", repr(model))
    if not isinstance(said, Prediction):
        remedy = "Return ltds.Prediction(logits, features)."
        raise TrainingError(expected(f"what {whose} returns", "a ltds.Prediction", f"a {type(said).__name__}", remedy))
    for name, values in (("logits", said.logits), ("features", said.features)):
        if not isinstance(values, Tensor) or not values.is_floating_point():
            got = str(values.dtype) if isinstance(values, Tensor) else f"a {type(values).__name__}"
            raise TrainingError(
                expected(f"the {name} of {whose}", "a tensor of floating-point numbers", got, "Convert them.")
            )
    if said.features.dim() != 2 or len(said.features) != shape[0]:
        remedy = "Return a vector for each image: similar training images are found by it."
        found = tuple(said.features.shape)
        raise TrainingError(expected(f"the features of {whose}", f"of shape ({shape[0]}, D)", found, remedy))
    if said.logits.shape != shape:
        remedy = "Return a row for each image, with a column for each class of the task."
        raise TrainingError(expected(f"the logits of {whose}", f"of shape {shape}", tuple(said.logits.shape), remedy))
    if not bool(torch.isfinite(said.logits.amax(dim=1)).all()):  # NaN, +inf, or -inf for every class
        remedy = "Check how it computes them. -inf is allowed for a class that is never predicted, but not for all."
        raise TrainingError(expected(f"the logits of {whose}", "finite", "NaN or infinity", remedy))
    return said.logits
