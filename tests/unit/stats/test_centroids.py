"""Mean features of (domain, class) pairs: against loops, blended with the old ones, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.core.errors import DataError
from ltds.stats.centroids import PairCentroids
from reference import boda_reference as twin

COUNTS = np.array([[3, 0, 1], [2, 2, 0]])
LABELS = np.array([0, 2, 0, 1, 0, 0, 1, 0])
DOMAINS = np.array([0, 0, 0, 1, 1, 0, 1, 1])


def rows() -> torch.Tensor:
    return torch.randn(len(LABELS), 4, generator=torch.Generator().manual_seed(0))


def test_means_are_the_slow_twin_however_they_are_batched() -> None:
    centroids, features = PairCentroids(COUNTS, 4), rows()
    slow = twin.centroids(features.double().tolist(), LABELS.tolist(), DOMAINS.tolist())
    parts = [slice(0, 3), slice(3, 8)]
    for batches in ([slice(None)], parts, parts[::-1]):
        means = centroids.means((features[part], LABELS[part], DOMAINS[part]) for part in batches)
        pairs = zip(centroids.domains.tolist(), centroids.labels.tolist(), strict=True)
        assert_close(means, torch.tensor([slow[pair] for pair in pairs], dtype=torch.float64), rtol=0, atol=1e-12)
    assert list(zip(centroids.domains.tolist(), centroids.labels.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (1, 0),
        (1, 1),
    ]


def test_the_first_means_are_stored_and_later_ones_blended() -> None:
    centroids = PairCentroids(COUNTS, 4, momentum=0.2)
    first, second = torch.ones(4, 4, dtype=torch.float64), torch.full((4, 4), 6.0, dtype=torch.float64)
    assert not centroids.fitted
    centroids.commit(first)
    assert centroids.fitted
    assert torch.equal(centroids.value, first.float())
    centroids.commit(second)
    assert_close(centroids.value, torch.full((4, 4), 0.8 * 6 + 0.2 * 1))
    assert set(centroids.state_dict()) == {"value", "fitted"}


def test_a_pair_without_images_is_refused() -> None:
    part = slice(0, 3)
    with pytest.raises(DataError, match="domain 1 and class 0"):
        PairCentroids(COUNTS, 4).means([(rows()[part], LABELS[part], DOMAINS[part])])
