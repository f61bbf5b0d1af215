"""Images that are nearly the same: found by their hashes, confirmed by their small copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ltds.planning.check.looking import LookedAt

BITS = 4  # hashes of near-duplicates differ in at most so many of 64 bits
SAME = 3.0  # and their small copies by at most this on average, of 255
FLAT = 6.0  # an image with less contrast than this looks like any other: it is left out
BLOCK = 1024


def near_duplicates(images: Mapping[int, LookedAt]) -> Iterator[tuple[int, int]]:
    """Pairs of rows whose images are nearly the same, the smaller row first."""
    rows = np.array(sorted(row for row, image in images.items() if image.small.std() >= FLAT), dtype=np.int64)
    hashes = np.array([images[int(row)].hash for row in rows], dtype=np.uint64)
    for start in range(0, len(rows), BLOCK):
        differing = np.bitwise_count(hashes[start : start + BLOCK, None] ^ hashes[None, start:])
        for i, j in zip(*np.nonzero(differing <= BITS), strict=True):
            if j > i and _is_same(images[int(rows[start + i])], images[int(rows[start + j])]):
                yield int(rows[start + i]), int(rows[start + j])


def _is_same(first: LookedAt, second: LookedAt) -> bool:
    return bool(np.abs(first.small.astype(np.float32) - second.small).mean() <= SAME)
