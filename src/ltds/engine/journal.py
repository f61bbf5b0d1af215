"""The journal of a run: one JSON object a line, in the order of the steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from ltds.core.files import disk_full_explained, write_text
from ltds.core.runs import RunDirectory
from ltds.engine.tensorboard import EventFile


class StepLog(Protocol):
    """Whatever wants to know about each step."""

    def step(
        self, step: int, epoch: int, lr: float, loss: float, terms: Mapping[str, float], seconds: float
    ) -> None: ...


class Journal:
    """Appends to log.jsonl. Opening it at a step drops what an interrupted run wrote after that step's checkpoint."""

    def __init__(self, run: RunDirectory, step: int, events: bool = False) -> None:
        """`events`: write what is written to TensorBoard, too."""
        write_journal(run, [row for row in run.read_journal() if row["step"] <= step])
        self._path = run.journal_file
        self._file = run.journal_file.open("a", encoding="utf-8")
        self._events = EventFile(run.path, step) if events else None

    def step(self, step: int, epoch: int, lr: float, loss: float, terms: Mapping[str, float], seconds: float) -> None:
        """Steps are counted from 1 here: `step` steps are done."""
        row = {"kind": "step", "step": step, "epoch": epoch, "lr": lr, "loss": loss}
        self._write({**row, "terms": dict(terms), "seconds": round(seconds, 4)})

    def validation(
        self, step: int, epoch: int, accuracy: float, per_domain: Mapping[str, float | None], best: bool
    ) -> None:
        row = {"kind": "validation", "step": step, "epoch": epoch, "split": "val", "accuracy": accuracy}
        self._write({**row, "per_domain": dict(per_domain), "best": best})

    def frechet(self, step: int, epoch: int, pairs: Mapping[str, float]) -> None:
        """Distances between the validation features of each two source domains."""
        mean = sum(pairs.values()) / len(pairs)
        self._write({"kind": "frechet", "step": step, "epoch": epoch, "pairs": dict(pairs), "mean": mean})

    def window(self, step: int, found: bool) -> None:
        """The end of a phase with SWAD: whether it found a window, whose mean is kept instead of the best weights."""
        self._write({"kind": "window", "step": step, "found": found})

    def sync(self) -> None:
        """Make sure that what was written is on the disk."""
        if self._events:
            self._events.flush()
        os.fsync(self._file.fileno())

    def _write(self, row: Mapping[str, Any]) -> None:
        with disk_full_explained(self._path):
            self._file.write(_line(row))
            self._file.flush()
        if self._events:
            self._events.write(row)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._events:
            self._events.close()


class SilentJournal(Journal):
    """A journal that keeps nothing: of the ranks after the first, and of steps that are only timed."""

    def __init__(self) -> None:
        pass

    def sync(self) -> None:
        pass

    def _write(self, row: Mapping[str, Any]) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def write_journal(run: RunDirectory, rows: Sequence[Mapping[str, Any]], events: bool = False) -> None:
    """Write a journal whose lines are known already. `events`: to TensorBoard, too."""
    write_text(run.journal_file, "".join(_line(row) for row in rows))
    if events:
        file = EventFile(run.path, 0)
        for row in rows:
            file.write(row)
        file.close()


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, allow_nan=False) + "\n"
