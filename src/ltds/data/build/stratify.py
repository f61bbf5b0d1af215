"""Splits drawn for each (domain, class) pair by itself, so that no rare class vanishes from one of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator
from ltds.data.splits import SPLITS

TRAIN, VAL, TEST = (SPLITS.index(name) for name in ("train", "val", "test"))


def shares(count: int, val: float, test: float) -> tuple[int, int]:
    """(val, test) images of a pair with `count` images: the rounded fractions, but never all of them.

    Training comes first, then test, then validation: of one image it is for training, of two one is for test as well,
    of three or more each split with a fraction above 0 has at least one.
    """
    tested = min(max(1, round(count * test)), count - 1) if test > 0 and count > 1 else 0
    left = count - tested
    validated = min(max(1, round(count * val)), left - 1) if val > 0 and left > 1 else 0
    return validated, tested


def draw_splits(
    labels: NDArray[np.int64], domains: NDArray[np.int64], *, val: float, test: float, seed: int
) -> NDArray[np.int64]:
    """(N,) the split of each row, drawn in each (domain, class) pair at the pair's own address.

    A pair's draw depends on the order of its own rows alone: images added to one pair leave the others as they were.
    """
    splits = np.full(len(labels), TRAIN, dtype=np.int64)
    pairs = labels * (domains.max(initial=0) + 1) + domains
    order = np.argsort(pairs, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1):
        if not len(rows):
            continue
        rng = numpy_generator(seed, "splits", int(domains[rows[0]]), int(labels[rows[0]]))
        validated, tested = shares(len(rows), val, test)
        drawn = rng.permutation(rows)
        splits[drawn[:tested]] = TEST
        splits[drawn[tested : tested + validated]] = VAL
    return splits
