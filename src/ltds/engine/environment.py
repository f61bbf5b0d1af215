"""What a run ran on: versions, commit, device, threads, command."""

from __future__ import annotations

import datetime
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ltds
from ltds.core.processor import processor_name


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Facts for environment.json: what one needs to run the same thing again, and to know why it differs."""
    return {
        "ltds": ltds.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        # Rounding depends on the instructions that torch uses, so the same seed may end a little differently elsewhere.
        "processor": f"{processor_name()}, {torch.backends.cpu.get_cpu_capability()}",
        "device": str(device),
        "threads": torch.get_num_threads(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """The commit of a source checkout, with "+" where files differ from it; None for an installed package."""
    here = Path(__file__).resolve().parents[3]
    if not (here / ".git").exists():
        return None
    git = ["git", "-C", str(here)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed.strip() else "")
