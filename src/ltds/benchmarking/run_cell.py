"""One cell of a benchmark: train it, resume it, or record why it failed. Every executor calls this."""

from __future__ import annotations

import time
import traceback
from pathlib import Path
from typing import Any

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.core.trust import code_needed
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.identity import EXECUTION_SETTINGS
from ltds.engine.start import resume_run, train_new_run

PATIENCE_SECONDS = 15.0


def run_cell(path: Path, config: dict[str, Any], threads: int, first_phase: Path | None = None) -> None:
    """Train the run in `path` to its end. An error is recorded in the run directory instead of raised.

    `threads`, or `run.threads` where the settings say it, are those of the run; its ranks share them. `first_phase`: a
    run that may have trained the first phase of this one.
    """
    run = RunDirectory(path)
    try:
        if run.done:
            return
        _wait_until_free(run)
        if run.exists:
            # As this command asks, but with the number of threads it started with: rounding depends on it. No code but
            # that of this benchmark.
            execution = {name: config["run"][name] for name in EXECUTION_SETTINGS if name != "threads"}
            resume_run(run, trust=code_needed(config), execution=execution)
        else:
            config["run"]["threads"] = config["run"]["threads"] or max(1, threads // config["run"]["ranks"])
            other = None if first_phase is None else RunDirectory(first_phase)
            train_new_run(run, resolve(config), Manifest.read(Path(config["data"]["root"])), first_phase=other)
    except Exception as error:  # a cell may fail in any way, and must not take the others with it
        fail(run, f"{type(error).__name__}: {error}", traceback.format_exc())


def _wait_until_free(run: RunDirectory) -> None:
    """Give a process whose runner was killed the time to notice that and end."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with run.locked():
                return
        except CheckpointError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def fail(run: RunDirectory, error: str, trace: str = "") -> None:
    """Record why a cell failed, for the reader and so that it is not tried again unless asked for."""
    run.write_failure({"error": error, "traceback": trace, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
