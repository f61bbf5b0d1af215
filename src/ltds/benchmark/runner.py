"""The runner: which cells are left, and what happens to them, whatever executes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ltds.benchmark.grid import Cell
from ltds.benchmark.standing import write_index
from ltds.core.errors import CheckpointError
from ltds.core.files import LockedError, locked
from ltds.core.progress import SILENT, Progress
from ltds.data.cache import ImageCache
from ltds.data.manifest import Manifest


class Executor(Protocol):
    """Brings cells to their end, somewhere, and gives each back when it is over: done, or recorded as failed."""

    def submit(self, cells: Iterable[Cell]) -> Iterator[Cell]: ...


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Keep a second runner out of the folder; to look at the first one there is --status."""
    try:
        with locked(out):
            yield
    except LockedError as error:
        raise CheckpointError(
            f"Expected '{out}' to be free, but another benchmark is running in it. "
            f"Look at it with: ltds benchmark --status {out}"
        ) from error


def run_cells(
    cells: Sequence[Cell], executor: Executor, out: Path, retry_failed: bool = False, progress: Progress = SILENT
) -> Iterator[Cell]:
    """Bring every cell to its end that has not reached it, and give each back then.

    A finished cell is never repeated, an interrupted one goes on from its checkpoint, a failed one is left alone
    unless `retry_failed`. Images are decoded once, before the cells need them.
    """
    write_index(out, cells)
    if retry_failed:
        for cell in cells:
            cell.run.forget_failure()
    left = [cell for cell in cells if not cell.run.done and cell.run.failure() is None]
    for root, side in dict.fromkeys((cell.config.data.root, cell.config.data.decoded_side) for cell in left):
        ImageCache.open(Manifest.read(Path(root)), side, progress=progress)
    yield from executor.submit(left)
