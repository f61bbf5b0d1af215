"""Logit adjustment by class priors (Menon et al.): in the loss, or after training."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

ZeroCount = Literal["exclude", "one", "blend"]


def smoothed_counts(counts: Tensor, zero_count: ZeroCount, blend: float) -> Tensor:
    """(K,C) counts n_c^d that say what a class without images in a domain weighs there. METHODS 4.1.

    "exclude": nothing. "one": one image. "blend": n~_c^d = (1-k) n_c^d + k N_d n_c / N, as a domain of N_d images
    would have if a share k of them came from the pool of all domains; a class that no domain has keeps 0.
    """
    if zero_count == "one":
        return counts.clamp(min=1)
    if zero_count == "blend":
        sizes, pooled = counts.sum(dim=1, keepdim=True), counts.sum(dim=0)
        return (1 - blend) * counts + blend * sizes * pooled / pooled.sum()
    return counts


def logit_adjustment(counts: Tensor, tau: float) -> Tensor:
    """tau log n, of the shape of `counts` (..., C): 0 for tau = 0, also where n = 0; -inf there otherwise.

    Counts do as well as priors: tau log N is the same for every class.
    """
    return tau * torch.log(counts) if tau else torch.zeros_like(counts)


def adjusted_after_training(logits: Tensor, counts: Tensor, tau: float) -> Tensor:
    """(N,C) z - tau log pi of a model that was trained with plain cross-entropy: logits (N,C), pooled counts (C,).

    A class without images has no prior: its logit is left as it is.
    """
    prior = counts / counts.sum()
    return logits - tau * torch.where(counts > 0, prior, 1.0).log()
