"""A running covariance of features per class, pooled over domains, exact for any split into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ltds.core.devices import to_device
from ltds.stats.statistics import Statistics


@dataclass(frozen=True)
class PartialSums:
    """Sums over samples of their distances from the current means: count (C,), first (C,D), second (C,D) or (C,D,D).

    All three add up: the sums of the shards of a batch are the sums of the batch.
    """

    count: Tensor
    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class CovarianceEstimate:
    """Statistics of the samples so far: count N (C,), mean mu (C,D), sigma Sigma (C,D) diagonal or (C,D,D) full.

    Sigma is the population covariance. Nothing here changes an estimate: `updated` and `merged` return new ones.
    """

    count: Tensor
    mean: Tensor
    sigma: Tensor

    @property
    def is_full(self) -> bool:
        return self.sigma.dim() == 3

    def updated(self, features: Tensor, labels: Tensor) -> CovarianceEstimate:
        """The estimate after a batch: features (N,D), detached here; labels (N,).

        With a full covariance give labels on the CPU: for those on a GPU the host has to wait.
        """
        return self.merged(self.partial_sums(features, labels))

    @torch.no_grad()
    def partial_sums(self, features: Tensor, labels: Tensor) -> PartialSums:
        """What a batch, or a shard of one, adds: distances from the means before it, summed per class."""
        host_labels, labels = labels, to_device(labels, self.mean.device)
        distance = features.detach().to(self.mean.dtype) - self.mean[labels]
        count = torch.zeros_like(self.count).index_add_(0, labels, torch.ones_like(labels, dtype=self.count.dtype))
        first = torch.zeros_like(self.mean).index_add_(0, labels, distance)
        second = torch.zeros_like(self.sigma)
        if not self.is_full:
            return PartialSums(count, first, second.index_add_(0, labels, distance.square()))
        for c, samples in _samples_by_class(host_labels, distance.device):  # a product for each: no (N,D,D) tensor
            of_class = distance[samples]
            second[c] = of_class.T @ of_class
        return PartialSums(count, first, second)

    @torch.no_grad()
    def merged(self, sums: PartialSums) -> CovarianceEstimate:
        """The estimate with these sums taken in.

        ISDA: Sigma <- (1-w) Sigma + w B + w(1-w) (mu-m)(mu-m)^T, mu <- (1-w) mu + w m, N <- N + k, w = k / (k+N), for
        a batch of k samples with mean m and covariance B. With sums about mu (first = k (m-mu), second) this is
        Sigma <- (1-w) Sigma + second/(k+N) - t t^T, mu <- mu + t, t = first/(k+N): no 0/0 for classes never seen.
        """
        total = self.count + sums.count
        share = 1 / total.clamp_min(1)[:, None]
        shift = sums.first * share
        if self.is_full:
            kept = 1 - sums.count[:, None, None] * share[..., None]
            sigma = self.sigma.mul(kept).addcmul_(sums.second, share[..., None])
            sigma.baddbmm_(shift[:, :, None], shift[:, None, :], alpha=-1)
        else:
            sigma = self.sigma.mul(1 - sums.count[:, None] * share).addcmul_(sums.second, share)
            sigma.addcmul_(shift, shift, value=-1).clamp_min_(0)  # rounding may leave -1e-9
        return CovarianceEstimate(total, self.mean + shift, sigma)


def _samples_by_class(labels: Tensor, device: torch.device) -> Iterator[tuple[int, Tensor]]:
    """Each class of these labels (N,), in ascending order, and on the device the positions of its samples."""
    labels = labels.cpu()
    classes, counts = labels.unique(return_counts=True)  # type: ignore[no-untyped-call]
    order = to_device(labels.argsort(stable=True), device)
    yield from zip(classes.tolist(), torch.split(order, counts.tolist()), strict=True)


class OnlineCovariance(Statistics):
    """Buffers count (C,), mean (C,D) and sigma (C,D), or (C,D,D) with `full`. Only `commit` changes them.

    `initial_count=1` repeats the released code, which counts one all-zero sample into every class.
    """

    count: Tensor
    mean: Tensor
    sigma: Tensor

    def __init__(self, classes: int, feature_dim: int, *, full: bool = False, initial_count: float = 0.0) -> None:
        super().__init__()
        shape = (classes, feature_dim, feature_dim) if full else (classes, feature_dim)
        self.register_buffer("count", torch.full((classes,), initial_count))
        self.register_buffer("mean", torch.zeros(classes, feature_dim))
        self.register_buffer("sigma", torch.zeros(shape))

    @property
    def estimate(self) -> CovarianceEstimate:
        """The committed statistics."""
        return CovarianceEstimate(self.count, self.mean, self.sigma)

    def updated(self, features: Tensor, labels: Tensor) -> CovarianceEstimate:
        """The committed statistics with a batch taken in, not yet stored: features (N,D), labels (N,)."""
        return self.estimate.updated(features, labels)

    @torch.no_grad()
    def commit(self, estimate: CovarianceEstimate) -> None:
        """Store an estimate."""
        self.count.copy_(estimate.count)
        self.mean.copy_(estimate.mean)
        self.sigma.copy_(estimate.sigma)


def covariance_distances(sigma: Tensor) -> Tensor:
    """(C,C) |Sigma_i - Sigma_j|, entrywise (Frobenius): sigma (C,D) or (C,D,D)."""
    flat = sigma.flatten(1)
    # The faster mode through a matrix product leaves 1e-3 between equal covariances.
    return torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
