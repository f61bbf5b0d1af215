"""Triplet loss with semi-hard negatives: samples lie nearer to their class than to others (MASF's local loss)."""

from __future__ import annotations

import torch
from torch import Tensor


def semihard_triplet_loss(embedded: Tensor, labels: Tensor, *, margin: float) -> Tensor:
    """The mean over ordered pairs (a,p) of one class of max(0, margin + |a-p|^2 - |a-n|^2); 0 where there is no pair.

    n is the nearest sample of another class that is farther from a than p is, or the farthest one where there is none
    (Schroff et al., CVPR 2015). embedded (N,E), not normalised; labels (N,). The choice of n has no gradient.
    """
    distance = _squared_distances(embedded)
    other = labels[:, None] != labels[None, :]
    with torch.no_grad():
        ordered, index = torch.where(other, distance, torch.inf).sort(dim=1, stable=True)
        farther = torch.searchsorted(ordered, distance, right=True)  # number of negatives not farther than p
        negative = index.gather(1, farther.minimum(other.sum(1, keepdim=True) - 1).clamp_min(0))
    hinge = (margin + distance - distance.gather(1, negative)).clamp_min(0)
    pairs = ~other & other.any(1, keepdim=True)
    pairs.fill_diagonal_(False)
    return torch.where(pairs, hinge, 0).sum() / pairs.sum().clamp_min(1)


def _squared_distances(rows: Tensor) -> Tensor:
    """(N,N) |x_i - x_j|^2, without an (N,N,E) tensor."""
    centred = rows - rows.detach().mean(0)  # the same distances, computed more accurately
    square = centred.square().sum(1)
    return (square[:, None] + square[None, :] - 2 * centred @ centred.T).clamp_min(0)
