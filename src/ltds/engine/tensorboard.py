"""The journal for TensorBoard: the same numbers in event files next to log.jsonl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ltds.core.errors import ConfigError


def require_tensorboard() -> None:
    """Raise a ConfigError where the package is not installed, before anything is written."""
    if find_spec("tensorboard") is None:
        raise ConfigError(
            "Expected the package 'tensorboard' for run.tensorboard, but it is not installed. "
            "Type pip install 'ltds[tensorboard]', or set run.tensorboard=false: log.jsonl has the same numbers."
        )


class EventFile:
    """One event file for each start of the run; it cancels events after `step` in earlier files."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(log_dir=str(folder), purge_step=step + 1)

    def write(self, row: Mapping[str, Any]) -> None:
        """All numbers of a line of the journal."""
        for name, value in scalars(row):
            self._writer.add_scalar(name, value, row["step"])

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(name, value) of each number in a line: step/loss, step/terms/ce, validation/accuracy, frechet/mean, ..."""
    for key, value in row.items():
        if key in ("kind", "step", "epoch"):
            continue
        parts = value if isinstance(value, Mapping) else {"": value}
        for name, number in parts.items():
            if isinstance(number, int | float) and not isinstance(number, bool):
                yield "/".join(filter(None, (str(row["kind"]), key, str(name)))), float(number)
