"""The journal of a run, thinned out: a report reads many long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STEP = '{"kind": "step"'  # how the journal line of a step begins
STEPS = 300  # more steps hardly change a curve of 120 points, and parsing a thousand long journals takes minutes


def read_journal(file: Path) -> Iterator[dict[str, Any]]:
    """The lines without damaged ones, with about STEPS of the steps; only these are parsed."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return
    steps = [i for i, line in enumerate(lines) if line.startswith(STEP)]
    every = max(1, len(steps) // STEPS)
    skipped = set(steps) - set(steps[::every]) if every > 1 else set()
    for i, line in enumerate(lines):
        if line and i not in skipped:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict) and type(row.get("step")) is int:
                yield row
