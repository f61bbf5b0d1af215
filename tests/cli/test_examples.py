"""Every example runs, and says what it says it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_own_method(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "own_method.py")],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "'acc_u': 0." in done.stdout
    journal = (tmp_path / "runs" / "own-method" / "run" / "log.jsonl").read_text()
    assert journal.count('"focal"') == 10


def test_every_example_has_a_test() -> None:
    text = Path(__file__).read_text()
    assert [file.name for file in EXAMPLES.glob("*.py") if f"test_{file.stem}" not in text] == []
