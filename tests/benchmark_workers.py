"""The processes in which a benchmark trains its runs."""

from __future__ import annotations

from pathlib import Path

import pytest


def workers(runner: int) -> list[int]:
    """Child processes of the runner that train."""
    children = Path(f"/proc/{runner}/task/{runner}/children")
    if not children.is_file():
        pytest.skip("this system has no /proc to find the worker's number in")
    processes = [int(child) for child in children.read_text().split()]
    return [child for child in processes if b"run_worker" in Path(f"/proc/{child}/cmdline").read_bytes()]
