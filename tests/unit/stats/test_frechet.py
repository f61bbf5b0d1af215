"""Fréchet distance between clouds of features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from ltds.stats.frechet import frechet_distance, pairwise_frechet


def slow(first: np.ndarray, second: np.ndarray) -> float:
    """The definition, with a matrix root."""
    s1, s2 = (np.cov(x.T, bias=True) for x in (first, second))
    gap = first.mean(0) - second.mean(0)
    return float(gap @ gap + np.trace(s1 + s2 - 2 * sqrtm(s1 @ s2).real))


def test_it_equals_the_definition() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + 1
    second = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 6))
    assert frechet_distance(first, second) == pytest.approx(slow(first, second), rel=1e-9)
    assert frechet_distance(second, first) == pytest.approx(frechet_distance(first, second), rel=1e-12)


def test_it_knows_what_one_dimension_gives() -> None:
    first, second = np.array([[0.0], [2.0]]), np.array([[10.0], [16.0]])  # means 1 and 13, deviations 1 and 3
    assert frechet_distance(first, second) == pytest.approx(12**2 + (1 - 3) ** 2)


def test_fewer_images_than_features_are_no_trouble() -> None:
    rng = np.random.default_rng(1)
    cloud = rng.normal(size=(5, 40)).astype(np.float32)
    assert frechet_distance(cloud, cloud) == pytest.approx(0, abs=1e-12)
    assert frechet_distance(cloud, cloud + 2) == pytest.approx(4 * 40)
    # Rank 1 each, on crossing axes: tr S1 + tr S2, nothing shared.
    x, y = np.zeros((2, 3)), np.zeros((2, 3))
    x[:, 0], y[:, 1] = (-1, 1), (-2, 2)
    assert frechet_distance(x, y) == pytest.approx(1 + 4)


def test_pairs_are_of_domains_with_two_images_or_more() -> None:
    features = np.arange(10.0).reshape(5, 2)
    distances = pairwise_frechet(features, np.array([2, 0, 0, 2, 7]))
    assert list(distances) == [(0, 2)]
    assert distances[0, 2] == pytest.approx(slow(features[[1, 2]], features[[0, 3]]), abs=1e-6)
