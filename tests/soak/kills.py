"""Runs killed with SIGKILL again and again, at file operations and in between, then resumed: nothing may differ."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.start import resume_run, train_new_run
from ltds.methods.registry import METHODS
from resuming import assert_same_outcome
from soak.child import ChildEnd, finish, in_child, start
from soak.tally import Tally
from toy import toy_config

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link")


class FileOperations:
    """Counts the operations that change files, before each; at number `deadly` the process kills itself."""

    def __init__(self, deadly: int = 0) -> None:
        self.count, self.deadly = 0, deadly
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if writes or event in CHANGES:
            self.count += 1
            if self.count == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)


def methods_by_family() -> list[str]:
    """All methods, ordered so that each class comes once before any comes again with other settings."""
    turn: dict[object, int] = {}
    ranked = []
    for entry in METHODS.values():
        turn[entry.source] = turn.get(entry.source, 0) + 1
        ranked.append((turn[entry.source], entry.name))
    return [name for _, name in sorted(ranked, key=lambda pair: pair[0])]


def kill_and_resume(data: Manifest, folder: Path, method: str, kills: int, number: int) -> Tally:
    """Train `method` once without disturbance, and once with `kills` kills; compare."""
    tally, rng = Tally("SIGKILL in training, resumed"), numpy_generator(number, f"soak/{method}")
    straight, killed = RunDirectory(folder / "straight"), RunDirectory(folder / "killed")
    since = time.monotonic()
    whole = in_child(partial(_train, data, straight, method))
    seconds, operations = time.monotonic() - since, int(whole.said) if whole.said.isdecimal() else 0
    if not operations:
        tally.fault(f"{method}: the undisturbed run: {whole.kind}: {whole.said[-2000:]}")
        return tally
    for turn in range(kills):
        by_time = (turn + number) % 3 == 0
        # Early rather than late, so that a run is killed several times before it comes to its end.
        deadly = 0 if by_time else int(rng.integers(1, 2 + operations // 2))
        after = rng.uniform(0, 0.7 * seconds) if by_time else None
        end = _killed(partial(_train, data, killed, method, deadly), after)
        if end.kind == "signal" and end.said == "SIGKILL":
            tally.add("killed while training" if by_time else "killed at a file operation")
        elif end.is_fault or end.kind == "refused":
            tally.fault(f"{method}, kill {turn}: {end.kind}: {end.said[-2000:]}")
            return tally
        if killed.done:
            break
    last = in_child(partial(_train, data, killed, method))
    if last.kind != "ended":
        tally.fault(f"{method}: resuming: {last.kind}: {last.said[-2000:]}")
        return tally
    same = in_child(partial(assert_same_outcome, straight, killed))
    if same.kind != "ended":
        tally.fault(f"{method}: the outcome differs: {same.said[-2000:]}")
    left = [path.name for path in killed.path.rglob("*.part")]
    if left:
        tally.fault(f"{method}: left behind: {left}")
    shutil.rmtree(folder, ignore_errors=True)
    return tally


def _killed(work: partial[str], after: float | None) -> ChildEnd:
    process, pipe = start(work)
    if after is not None:
        time.sleep(after)
        os.kill(process, signal.SIGKILL)  # not waited for yet, so the number still belongs to the child
    return finish(process, pipe)


def _train(data: Manifest, run: RunDirectory, method: str, deadly: int = 0) -> str:
    """Start or resume the run; the number of file operations of this process."""
    operations = FileOperations(deadly)
    if run.done:
        return "1"
    if run.exists:
        resume_run(run)
    else:
        train_new_run(run, toy_config(data, method, run={"checkpoint_every": 1}), data)
    return str(operations.count)
