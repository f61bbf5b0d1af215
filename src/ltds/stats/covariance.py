"""Covariance: a running covariance of features per class, pooled over domains, exact under any split of the batches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class PartialSums:
    """Sums over samples of their distances from the current means: count (C,), first (C,D), second (C,D) or (C,D,D).

    All three add up: the sums of the shards of a batch are the sums of the batch.
    """

    count: Tensor
    first: Tensor
    second: Tensor

    def __add__(self, other: PartialSums) -> PartialSums:
        return PartialSums(self.count + other.count, self.first + other.first, self.second + other.second)


class OnlineCovariance(nn.Module):
    """Buffers count N (C,), mean mu (C,D), sigma Sigma (C,D) diagonal, or (C,D,D) with `full`; population covariance.

    `initial_count=1` repeats the released code, which counts one all-zero sample into every class.
    """

    count: Tensor
    mean: Tensor
    sigma: Tensor

    def __init__(self, classes: int, width: int, *, full: bool = False, initial_count: float = 0.0) -> None:
        super().__init__()
        self.full = full
        self.register_buffer("count", torch.full((classes,), initial_count))
        self.register_buffer("mean", torch.zeros(classes, width))
        self.register_buffer("sigma", torch.zeros(classes, width, width) if full else torch.zeros(classes, width))

    def update(self, features: Tensor, labels: Tensor) -> None:
        """Take a batch in: features (N,D), detached here; labels (N,)."""
        self.merge(self.partial_sums(features, labels))

    @torch.no_grad()
    def partial_sums(self, features: Tensor, labels: Tensor) -> PartialSums:
        """What a batch, or a shard of one, adds: distances from the means before it, summed per class."""
        distance = features.detach().to(self.mean.dtype) - self.mean[labels]
        count = torch.zeros_like(self.count).index_add_(0, labels, torch.ones_like(labels, dtype=self.count.dtype))
        first = torch.zeros_like(self.mean).index_add_(0, labels, distance)
        second = torch.zeros_like(self.sigma)
        if not self.full:
            return PartialSums(count, first, second.index_add_(0, labels, distance.square()))
        for c in labels.unique():  # type: ignore[no-untyped-call]  # one product per class: no (N,D,D) tensor
            own = distance[labels == c]
            second[c] = own.T @ own
        return PartialSums(count, first, second)

    @torch.no_grad()
    def merge(self, sums: PartialSums) -> None:
        """Move the statistics on.

        ISDA: Sigma <- (1-w) Sigma + w B + w(1-w) (mu-m)(mu-m)^T, mu <- (1-w) mu + w m, N <- N + k, w = k / (k+N), for
        a batch of k samples with mean m and covariance B. With sums about mu (first = k (m-mu), second) this is
        Sigma <- (1-w) Sigma + second/(k+N) - t t^T, mu <- mu + t, t = first/(k+N): no 0/0 for classes never met.
        """
        total = self.count + sums.count
        share = 1 / total.clamp_min(1)[:, None]
        shift = sums.first * share
        if self.full:
            kept = 1 - sums.count[:, None, None] * share[..., None]
            self.sigma.mul_(kept).addcmul_(sums.second, share[..., None])
            self.sigma.baddbmm_(shift[:, :, None], shift[:, None, :], alpha=-1)
        else:
            self.sigma.mul_(1 - sums.count[:, None] * share).addcmul_(sums.second, share)
            self.sigma.addcmul_(shift, shift, value=-1).clamp_min_(0)  # rounding may leave -1e-9
        self.mean.add_(shift)
        self.count.copy_(total)


def covariance_distances(sigma: Tensor) -> Tensor:
    """(C,C) |Sigma_i - Sigma_j|, entrywise (Frobenius): sigma (C,D) or (C,D,D)."""
    flat = sigma.flatten(1)
    return torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")  # no 1e-3 between equal ones
