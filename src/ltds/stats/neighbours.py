"""The classes most similar to each class, and covariances averaged over them, Eq. (7)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.errors import ConfigError, expected


@torch.no_grad()
def semantic_neighbours(semantics: Tensor, k: int) -> Tensor:
    """(C,k) the k classes of highest cosine, itself first, then by similarity, ties by index: semantics s (C,S).

    Eq. (7), first line: k_c = { i : s_c^T s_i in topk(Sim_c) }.
    """
    C = len(semantics)
    if not 1 <= k <= C:
        remedy = "Set method.neighbours to at most the number of classes."
        raise ConfigError(expected("the number of neighbours", f"between 1 and the {C} classes", k, remedy))
    unit = F.normalize(semantics.double(), dim=-1)
    neighbours = torch.empty(C, k, dtype=torch.long, device=semantics.device)
    height = max(1, 2**22 // C)  # blocks of rows: no (C,C) tensor for many classes
    for start in range(0, C, height):
        rows = torch.arange(start, min(start + height, C), device=semantics.device)
        similarity = (unit[rows] @ unit.T).round(decimals=12)  # so that equal classes tie in spite of rounding
        similarity[rows - start, rows] = torch.inf
        for j in range(k):
            best = similarity.argmax(1)  # the first of equal ones
            neighbours[rows, j] = best
            similarity[rows - start, best] = -torch.inf
    return neighbours


@torch.no_grad()
def neighbour_covariance(sigma: Tensor, neighbours: Tensor, counts: Tensor | None) -> Tensor:
    """Sigma' of every class, of the shape of `sigma`, (C,D) or (C,D,D): neighbours (C,k), counts n (C,).

    Eq. (7), second line: Sigma'_c = sum_{k in k_c} n_k Sigma_k / sum_{k in k_c} n_k, n_k the class size. Where all n_k
    are 0 it is Sigma_c itself. `counts=None` is the plain mean (the paper's ablation l).
    """
    share = torch.ones_like(neighbours, dtype=sigma.dtype) if counts is None else counts.to(sigma.dtype)[neighbours]
    itself = torch.zeros_like(share)
    itself[:, 0] = 1
    total = share.sum(1, keepdim=True)
    share = torch.where(total > 0, share / total.clamp_min(torch.finfo(sigma.dtype).tiny), itself)
    pooled = torch.zeros_like(sigma)
    for j in range(neighbours.shape[1]):  # one neighbour of every class at a time: no (C,k,D) tensor
        pooled.addcmul_(sigma[neighbours[:, j]], share[:, j].view(-1, *[1] * (sigma.dim() - 1)))
    return pooled
