"""The journal of a run, thinned out: a report reads many long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

KIND = len('{"kind": "step"')  # letters by which lines of one kind begin alike
STEPS = 300  # more steps hardly change a curve of 120 points, and parsing a thousand long journals takes minutes
ALL_RUNS = 12_000  # steps of all runs of a report together, if there are very many
FEWEST = 60
DECODER: Final = json.JSONDecoder()


def lines_for(runs: int) -> int:
    """How many lines of each kind a report on this many runs reads of each."""
    return min(STEPS, max(FEWEST, ALL_RUNS // max(1, runs)))


def read_journal(file: Path, most: int = STEPS) -> Iterator[dict[str, Any]]:
    """The lines without damaged ones, with about `most` of each kind; only these are parsed."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return
    places: dict[bytes, list[int]] = {}
    for i, line in enumerate(lines):
        places.setdefault(line[:KIND], []).append(i)
    for i in sorted(i for same in places.values() for i in same[:: max(1, len(same) // most)]):
        row = _parsed(lines[i].decode("utf-8", errors="replace").strip(" \t\r"))
        if isinstance(row, dict) and type(row.get("step")) is int:
            yield row


def _parsed(line: str) -> object:
    """The value that the line holds, None if it is damaged. `json.loads` takes twice as long for a short line."""
    try:
        value, end = DECODER.raw_decode(line)
    except (ValueError, RecursionError):
        return None
    return value if end == len(line) else None
