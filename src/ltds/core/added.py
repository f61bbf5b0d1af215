"""Settings that came after the first runs, with the value that means "as before"."""

from __future__ import annotations

from typing import Any

# A run that was made without one of these goes on, and counts as the same experiment as a run with this value.
ADDED: dict[str, Any] = {
    "backbone.frozen": 0,
    "backbone.architecture": "",
    "backbone.batchnorm": "train",
    "data.cached_variants": 1,
    "averaging.start_patience": 3,
    "averaging.end_patience": 6,
    "averaging.tolerance": 0.3,
    "run.precision": "float32",
    "run.ranks": 1,
    "run.sync_batchnorm": False,
    "schedule.keep": "best",
    "method.average_domains": True,
    "method.only_known_classes": False,
    "method.contrast_classes": 0,
}


def as_before(name: str, value: Any) -> bool:
    """Whether a setting (dotted name) was added later and has the value that means "as before"."""
    return name in ADDED and bool(value == ADDED[name])
