"""Fréchet distance: how far two sets of features lie apart, each seen as a Gaussian."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def frechet_distance(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """|m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)), squared as in FID; first (N,D), second (M,D).

    S are population covariances. With S_i = R_i^T R_i the last trace is the sum of the singular values of R_1 R_2^T:
    exact for covariances of any rank, where a matrix root of S1 S2 is not.
    """
    (m1, r1), (m2, r2) = _gaussian(first), _gaussian(second)
    shared = np.linalg.svd(r1 @ r2.T, compute_uv=False).sum()
    distance = ((m1 - m2) ** 2).sum() + (r1**2).sum() + (r2**2).sum() - 2 * shared
    return float(max(distance, 0.0))  # rounding may leave -1e-15 between equal sets


def pairwise_frechet(features: NDArray[np.floating], domains: NDArray[np.int64]) -> dict[tuple[int, int], float]:
    """(a, b), a < b -> their distance, for domains with two images or more. features (N,D), domains (N,)."""
    present, counts = np.unique(domains, return_counts=True)
    by_domain = {int(d): features[domains == d] for d, count in zip(present, counts, strict=True) if count > 1}
    return {(a, b): frechet_distance(by_domain[a], by_domain[b]) for a, b in combinations(by_domain, 2)}


def _gaussian(features: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean (D,) and a root R (min(N,D),D) of the covariance, S = R^T R."""
    exact = features.astype(np.float64)
    mean = exact.mean(axis=0)
    return mean, np.linalg.qr(exact - mean, mode="r") / np.sqrt(len(exact))
