"""Cross-entropy calibrated by class counts: the paper's L_dc, balanced softmax and logit adjustment."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def log_counts(counts: Tensor) -> Tensor:
    """log n, of the shape of `counts` (..., C), with log 0 = -inf: a class without images leaves the denominator."""
    return torch.log(counts)


def calibrated_cross_entropy(logits: Tensor, labels: Tensor, log_n: Tensor) -> Tensor:
    """(N,) -log softmax(z + log n)_y: logits (N,C), labels (N,), log_n (N,C) or (C,).

    Eq. (2): L_dc = -log [ n_y exp(z_y) / sum_c n_c exp(z_c) ] with log_n[i] = log n^{d_i}, the counts of the sample's
    own domain. With counts pooled over domains it is the balanced softmax (BSCE). A class with n_c = 0 gets exactly
    zero gradient.
    """
    return F.cross_entropy(logits + log_n, labels, reduction="none")
