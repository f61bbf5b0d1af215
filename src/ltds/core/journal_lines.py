"""The lines of a run's journal, each a JSON object with a step; damaged ones, such as a crash leaves, are ignored."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

END = 4096  # bytes at the end of a journal, which nearly always hold its last line


def journal_rows(content: bytes) -> list[dict[str, Any]]:
    """All lines of a journal."""
    rows: list[dict[str, Any]] = []
    for line in content.decode(errors="replace").splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and type(row.get("step")) is int:
            rows.append(row)
    return rows


def last_step(file: BinaryIO) -> tuple[int, float]:
    """Step and seconds in the last line of a journal; zeros where there is none.

    Reads further back until it finds one: a line with a number for each pair of many domains is long.
    """
    size, end = os.fstat(file.fileno()).st_size, END
    while True:
        file.seek(max(0, size - end))
        for line in reversed(file.read().splitlines()):
            try:
                row = json.loads(line)
                return int(row["step"]), float(row.get("seconds", 0.0))
            except (ValueError, LookupError, TypeError, RecursionError):
                continue
        if end >= size:
            return 0, 0.0
        end *= 4
