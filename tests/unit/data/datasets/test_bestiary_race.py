"""Several processes that use Bestiary for the first time at once all get it, drawn once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from pathlib import Path
from ltds.data.datasets.bestiary import BestiaryConfig, build

config = BestiaryConfig(size=16, n_max=4, n_min=2, val_per_pair=0, test_per_pair=1)
manifest = build(Path(sys.argv[1]), config, workers=1)
print(len(manifest), manifest.checksum)
"""


def test_simultaneous_first_use(tmp_path: Path) -> None:
    code = [sys.executable, "-c", CODE, str(tmp_path / "bestiary")]
    processes = [subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert len({out for out, _ in outputs}) == 1
    assert not (tmp_path / "bestiary" / "building.json").exists()
