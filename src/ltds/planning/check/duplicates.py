"""Images that are nearly the same: found by their hashes, confirmed by their small copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ltds.planning.check.looking import LookedAt

BITS = 4  # hashes of near-duplicates differ in at most this many of 64 bits
SAME = 3.0  # and their small copies by at most this on average, of 255
FLAT = 6.0  # an image with less contrast than this looks like any other: it is left out
MANY = 1000  # pairs, from which on not every pair is listed
BLOCK = 1024


def near_duplicates(images: Mapping[int, LookedAt]) -> Iterator[tuple[int, int]]:
    """Pairs of rows whose images are nearly the same, the smaller row first.

    After MANY pairs, an image is only linked to the group of those like it: n copies are n - 1 more pairs, not n² / 2.
    A group whose images lie in two classes, splits or domains still has a pair that does.
    """
    rows = np.array(sorted(row for row, image in images.items() if image.small.std() >= FLAT), dtype=np.int64)
    if not len(rows):
        return
    hashes = np.array([images[int(row)].hash for row in rows], dtype=np.uint64)
    small = np.stack([images[int(row)].small for row in rows])
    groups, listed = np.arange(len(rows)), 0
    for start in range(0, len(rows), BLOCK):
        close = np.bitwise_count(hashes[start : start + BLOCK, None] ^ hashes[None, start:]) <= BITS
        for i in np.flatnonzero(close.sum(axis=1) > 1):  # each is like itself
            first = start + i
            others = first + 1 + np.flatnonzero(close[i, i + 1 :])
            if listed >= MANY:
                others = others[groups[others] != groups[first]]
            for other in others[_are_same(small[first], small[others])]:
                if groups[other] != groups[first]:
                    groups[groups == groups[other]] = groups[first]
                elif listed >= MANY:  # linked by a pair of this image
                    continue
                listed += 1
                yield int(rows[first]), int(rows[other])


def _are_same(image: NDArray[np.uint8], others: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which of the small copies (n,16,16,3) are nearly the image (16,16,3)."""
    same: NDArray[np.bool_] = np.abs(others.astype(np.float32) - image).mean(axis=(1, 2, 3)) <= SAME
    return same
