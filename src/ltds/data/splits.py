"""The splits of a dataset, in the order of their ids."""

from __future__ import annotations

SPLITS = ("train", "val", "test")
