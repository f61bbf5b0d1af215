"""Every example runs, and says what it says it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ltds.data.datasets.bestiary import BestiaryConfig, build

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_own_method(tmp_path: Path) -> None:
    small = BestiaryConfig(n_max=20, n_min=4, val_per_pair=1, test_per_pair=1)
    build(tmp_path / "data" / "bestiary", small)  # found there by the example, which would build the full dataset
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "own_method.py")],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "LTDS_DATA": "data"},
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
