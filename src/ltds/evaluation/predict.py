"""From a model to a table of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

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
) -> PredictionTable:
    """Logits for every image of `batches`, pairs (images, row ids); `labels` and `domains` are indexed by row id."""
    logits, rows = [], []
    for images, ids in batches:
        logits.append(model(images).logits.float().cpu().numpy())
        rows.append(ids)
    order = np.concatenate(rows)
    return PredictionTable(np.concatenate(logits), labels[order], domains[order], order)
