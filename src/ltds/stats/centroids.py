"""Mean features of classes or (domain, class) pairs, computed from all training images."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.stats.statistics import Statistics


def group_sums(samples: Iterable[tuple[Tensor, NDArray[np.int64]]], groups: int, dim: int) -> tuple[Tensor, Tensor]:
    """(G,D) sums over batches of features (N,D) of groups (N,), in float64, and (G,) how many samples there were."""
    sums = torch.zeros(groups, dim, dtype=torch.float64)  # on the CPU, where the order of summation is fixed
    images = torch.zeros(groups, dtype=torch.long)
    for features, of_sample in samples:
        index = torch.from_numpy(of_sample)
        sums.index_add_(0, index, features.detach().cpu().double())
        images += index.bincount(minlength=groups)
    return sums, images


class PairCentroids(Statistics):
    """Buffer value (M,D), the mean features of the M pairs that have training images. Only `commit` changes it.

    labels and domains (M,) say which pairs these are; they follow from the counts n_c^d (K,C) and are not saved.
    """

    value: Tensor
    fitted: Tensor  # () bool: whether there are means yet
    labels: Tensor
    domains: Tensor

    def __init__(self, counts: NDArray[np.int64], feature_dim: int, *, momentum: float = 0.0) -> None:
        super().__init__()
        self.momentum = momentum
        domains, labels = np.nonzero(counts)
        self._slot = np.full(counts.shape, -1)
        self._slot[domains, labels] = np.arange(len(labels))
        self.register_buffer("value", torch.zeros(len(labels), feature_dim))
        self.register_buffer("fitted", torch.tensor(False))
        self.register_buffer("labels", torch.from_numpy(labels), persistent=False)
        self.register_buffer("domains", torch.from_numpy(domains), persistent=False)

    def means(self, samples: Iterable[tuple[Tensor, NDArray[np.int64], NDArray[np.int64]]]) -> Tensor:
        """(M,D) the means of batches of features (N,D), labels (N,) and domains (N,): all training images, once."""
        slotted = ((features, self._slot[domains, labels]) for features, labels, domains in samples)
        sums, images = group_sums(slotted, *self.value.shape)
        if not bool(images.all()):
            missing = int((images == 0).nonzero()[0])
            pair = f"the pair of domain {int(self.domains[missing])} and class {int(self.labels[missing])}"
            raise DataError(expected(pair, "among the images to average", "none of it", "Pass every training image."))
        return sums / images[:, None]

    @torch.no_grad()
    def commit(self, means: Tensor) -> None:
        """Store new means (M,D): value <- (1 - momentum) means + momentum value; the first are stored as they are."""
        means = means.to(self.value)
        self.value.copy_(torch.lerp(means, self.value, self.momentum) if bool(self.fitted) else means)
        self.fitted.fill_(True)
