"""The work of one cell: train it, go on with it, or write down why it failed. Every executor calls this."""

from __future__ import annotations

import os
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.start import create_run, resume_run


def work(path: Path, config: dict[str, Any], threads: int) -> None:
    """Bring the run in `path` to its end. An error is recorded beside it and raises nothing."""
    run = RunDirectory(path)
    try:
        if run.done:
            return
        _wait_until_free(run)
        if run.exists:
            resume_run(run)  # with the threads it began with: bits depend on their number
        else:
            config["run"]["threads"] = threads
            create_run(run, resolve(config), Manifest.read(Path(config["data"]["root"])))
    except Exception as error:  # a cell may fail in any way, and must not take the others with it
        fail(run, f"{type(error).__name__}: {error}", traceback.format_exc())


def _wait_until_free(run: RunDirectory, patience: float = 15.0) -> None:
    """Give a process that a killed runner left behind the time to notice it and end."""
    until = time.monotonic() + patience
    while True:
        try:
            with run.locked():
                return
        except CheckpointError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def fail(run: RunDirectory, error: str, trace: str = "") -> None:
    """Record why a cell failed, for people and for `--retry-failed`."""
    run.write_failure({"error": error, "traceback": trace, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})


def die_with(parent: int) -> None:
    """End this process soon after its parent has ended, so that a killed runner leaves nobody training behind it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
