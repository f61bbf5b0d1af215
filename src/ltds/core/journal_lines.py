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
    """The step of a journal's last line, and the seconds that the last timed step took; zeros where there are none.

    Reads further back until it finds them: a line with a number for each pair of many domains is long, and lines of
    validation have no seconds.
    """
    size, end = os.fstat(file.fileno()).st_size, END
    while True:
        file.seek(max(0, size - end))
        step = None
        for line in reversed(file.read().splitlines()):
            try:
                row = json.loads(line)
                step = int(row["step"]) if step is None else step
                return step, float(row["seconds"])
            except (ValueError, LookupError, TypeError, RecursionError):
                continue
        if end >= size:
            return step or 0, 0.0
        end *= 4
