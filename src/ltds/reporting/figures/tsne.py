"""t-SNE (van der Maaten and Hinton 2008) of a few hundred points, exact, in NumPy.

For so few points the tree of Barnes and Hut costs more than it saves: all pairs of 600 points, 500 times, take half a
second, and nothing has to be installed or imported for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltds.evaluation.arrays import FloatArray

Matrix = NDArray[np.float32]
EARLY, LATE = 250, 250  # iterations with exaggerated attraction, then without
EXAGGERATION = 12.0
BLOCK = 64  # rows at a time: they stay in the cache, and are too few for NumPy to start threads


def tsne(points: FloatArray, start: FloatArray, perplexity: float) -> FloatArray:
    """(N,2) places on a plane for points (N,D), from the places `start` (N,2); the same each time."""
    attraction = similarities(points, perplexity)
    places: FloatArray = start.astype(np.float64)
    rate = max(len(points) / EXAGGERATION / 4, 50.0)
    for iterations, exaggeration, momentum in ((EARLY, EXAGGERATION, 0.5), (LATE, 1.0, 0.8)):
        # Each phase starts at rest: what was gained in the first would carry the second to a worse map.
        speed, gains = np.zeros_like(places), np.ones_like(places)
        for _ in range(iterations):
            slope = _slope(attraction, places, exaggeration)
            gains = np.maximum(np.where(speed * slope < 0, gains + 0.2, gains * 0.8), 0.01)
            speed = momentum * speed - rate * gains * slope
            places = places + speed
    centred: FloatArray = places - places.mean(axis=0)
    return centred


def similarities(points: FloatArray, perplexity: float) -> Matrix:
    """(N,N) symmetric, sum 1: how likely each pair of points are neighbours, each with `perplexity` of them."""
    count = len(points)
    squares = (points**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * (points @ points.T), 0)
    np.fill_diagonal(distances, np.inf)
    neighbours = min(count - 1, int(3 * perplexity) + 1)  # the others have no share to speak of
    nearest = np.argpartition(distances, neighbours - 1, axis=1)[:, :neighbours]
    near = np.take_along_axis(distances, nearest, axis=1)
    near -= near.min(axis=1, keepdims=True)  # does not change the shares, and no exponential vanishes
    near /= float(np.median(near)) or 1.0
    low, high = np.full(count, -15.0), np.full(count, 15.0)  # logarithms of the precision
    for _ in range(40):
        middle = (low + high) / 2
        wide = _entropy(near, np.exp(middle)) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    weights = np.exp(-np.exp((low + high) / 2)[:, None] * near)
    shares = np.zeros((count, count), np.float32)
    np.put_along_axis(shares, nearest, weights / weights.sum(axis=1, keepdims=True), axis=1)
    return (shares + shares.T) / np.float32(2 * count)


def _entropy(distances: FloatArray, precision: FloatArray) -> FloatArray:
    """(N,) of the shares exp(-precision distance) of the neighbours of each point."""
    weights = np.exp(-precision[:, None] * distances)
    total = weights.sum(axis=1)
    entropy: FloatArray = np.log(total) + precision * (weights * distances).sum(axis=1) / total
    return entropy


def _slope(attraction: Matrix, places: FloatArray, exaggeration: float) -> FloatArray:
    """(N,2) gradient of the Kullback-Leibler divergence, attraction times `exaggeration`."""
    count = len(places)
    flat = places.astype(np.float32)
    square, ones = (flat**2).sum(axis=1, keepdims=True), np.ones((count, 1), np.float32)
    left, right = np.hstack([flat, square, ones]), np.hstack([-2 * flat, ones, square + 1]).T.copy()
    with_ones = np.hstack([flat, ones])
    pulled, pushed, total = np.empty((count, 3)), np.empty((count, 3)), -float(count)  # the diagonal is 1 each
    for first in range(0, count, BLOCK):
        rows = slice(first, first + BLOCK)
        near = np.reciprocal(left[rows] @ right)  # 1 / (1 + squared distance)
        total += float(near.sum())
        pulled[rows] = (attraction[rows] * near) @ with_ones
        pushed[rows] = np.square(near, out=near) @ with_ones
    force = exaggeration * pulled - pushed / total
    slope: FloatArray = 4 * (force[:, 2:] * places - force[:, :2])
    return slope
