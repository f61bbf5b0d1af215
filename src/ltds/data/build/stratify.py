"""Splits drawn separately for each (domain, class) pair, so that rare classes are in every split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ltds.core.rng import numpy_generator
from ltds.data.splits import TEST, TRAIN, VAL


def split_counts(count: int, val: float, test: float, most_test: int = 0) -> tuple[int, int]:
    """(val, test) images of a pair with `count` images: the rounded fractions, but never all of them.

    A single image is for training; of two, one is for test; of three or more, each split with a fraction above 0 has at
    least one. `most_test` limits the test images (0: no limit).
    """
    test_count = min(max(1, round(count * test)), count - 1) if test > 0 and count > 1 else 0
    test_count = min(test_count, most_test or test_count)
    left = count - test_count
    val_count = min(max(1, round(count * val)), left - 1) if val > 0 and left > 1 else 0
    return val_count, test_count


def draw_splits(
    classes: Sequence[str], domains: Sequence[str], *, val: float, test: float, seed: int, most_test: int = 0
) -> NDArray[np.int64]:
    """(N,) the split of each row, drawn separately in each (domain, class) pair. Rows are given by their names.

    A pair's draw depends only on its names and on the order of its rows: images, classes and domains that are added do
    not change the other pairs.
    """
    splits = np.full(len(classes), TRAIN, dtype=np.int64)
    pairs: dict[tuple[str, str], list[int]] = {}
    for row, pair in enumerate(zip(domains, classes, strict=True)):
        pairs.setdefault(pair, []).append(row)
    for (domain, name), rows in pairs.items():
        rng = numpy_generator(seed, "splits", name_number(domain), name_number(name))
        val_count, test_count = split_counts(len(rows), val, test, most_test)
        drawn = rng.permutation(rows)
        splits[drawn[:test_count]] = TEST
        splits[drawn[test_count : test_count + val_count]] = VAL
    return splits


def name_number(name: str) -> int:
    """A number that stands for a name, the same on every machine; names that are not UTF-8 are refused later."""
    digest = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
