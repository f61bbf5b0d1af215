"""Contrast of visual features with class embeddings on the unit sphere, with a margin: L_z2s, Eq. (3)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def semantic_logits(projected: Tensor, labels: Tensor, table: Tensor, *, margin: float, temperature: float) -> Tensor:
    """(..., N, C) cosines with every class, the true one less the margin, over the temperature.

    q_c = (u(e(f(x)))^T t_c - alpha [c = y]) / tau with u(x) = x / max(|x|, 1e-12): projected e(f(x)) (N,S), of any
    length; labels (N,); table t (..., C, S) with unit rows.
    """
    with torch.autocast(table.device.type, enabled=False):  # half precision cosines over tau are off by about 0.1
        cosine = F.normalize(projected.to(table.dtype), dim=-1) @ table.transpose(-1, -2)
    true = labels[:, None] == torch.arange(table.shape[-2], device=labels.device)
    return (cosine - margin * true.to(cosine.dtype)) / temperature


def visual_to_semantic_loss(
    projected: Tensor,
    labels: Tensor,
    table: Tensor,
    *,
    margin: float,
    temperature: float,
    log_n: Tensor | None = None,
) -> Tensor:
    """(..., N) L_z2s of each sample against a table of class embeddings or of semantic prototypes.

    Eq. (3): -log [ exp((p^T t_y - alpha)/tau) / (exp((p^T t_y - alpha)/tau) + sum_{j != y} exp(p^T t_j / tau)) ] with
    p = u(e(f(x))): projected (N,S), labels (N,), table (C,S), or (T,C,S) for T tables at once.

    Reading: Eq. (3) prints no counts, the text integrates Eq. (2): with `log_n`, (N,C) or (C,), every term is weighted
    by n_c of the sample's domain; without, the equation as printed.
    """
    logits = semantic_logits(projected, labels, table, margin=margin, temperature=temperature)
    if log_n is not None:
        logits = logits + log_n
    true = labels.expand(logits.shape[:-1]).unsqueeze(-1)
    return -torch.log_softmax(logits, dim=-1).gather(-1, true).squeeze(-1)
