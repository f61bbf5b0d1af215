"""The splits of a dataset, in the order of their ids."""

from __future__ import annotations

SPLITS = ("train", "val", "test")
TRAIN, VAL, TEST = range(len(SPLITS))  # their ids
