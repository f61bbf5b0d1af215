"""From a model to a table of what it said."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.types import Prediction
from ltds.evaluation.table import PredictionTable

Images = Iterable[tuple[Tensor, NDArray[np.int64]]]


@torch.inference_mode()
def predict(
    model: Callable[[Tensor], Prediction], batches: Images, labels: NDArray[np.int64], domains: NDArray[np.int64]
) -> PredictionTable:
    """Logits for every image of `batches`, (images, row ids) each; `labels` and `domains` are indexed by row id."""
    logits, rows = [], []
    for images, ids in batches:
        logits.append(model(images).logits.float().cpu().numpy())
        rows.append(ids)
    order = np.concatenate(rows)
    return PredictionTable(np.concatenate(logits), labels[order], domains[order], order)
