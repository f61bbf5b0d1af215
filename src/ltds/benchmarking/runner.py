"""The runner: find the cells that are not finished, and have an executor train them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import fail
from ltds.benchmarking.status import write_index
from ltds.core.errors import CheckpointError, LtdsError
from ltds.core.locks import LockedError, locked
from ltds.core.progress import SILENT, Progress
from ltds.data.manifest import Manifest
from ltds.engine.own_code import warn_of_reused_runs
from ltds.engine.same_data import (
    CONTENT_KEY,
    image_content,
    readable_environment,
    recorded_checksums,
    require_same_data,
)
from ltds.engine.shared_data import prepare_shared_data, shared_data_key


class Executor(Protocol):
    """Trains cells somewhere, and yields each when it has ended: done, or recorded as failed."""

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]: ...


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Keep a second benchmark out of the folder while the block runs."""
    try:
        with locked(out):
            yield
    except LockedError as error:
        raise CheckpointError(
            f"Expected '{out}' to be free, but another benchmark is running in it. "
            "Wait for it, look at its status, or choose another folder.",
            arguments=[f"status={out}", "out"],
        ) from error


@contextmanager
def running(
    cells: Sequence[GridCell], executor: Executor, out: Path, retry_failed: bool = False, progress: Progress = SILENT
) -> Iterator[Iterator[GridCell]]:
    """`run_cells`, with the folder to itself. All worker processes end with the block, however that ends.

    A traceback that somebody keeps, as notebooks do, would keep an iterator open, and its workers at work.
    """
    with exclusive(out), closing(run_cells(cells, executor, out, retry_failed, progress)) as ended:
        yield ended


def run_cells(
    cells: Sequence[GridCell], executor: Executor, out: Path, retry_failed: bool = False, progress: Progress = SILENT
) -> Generator[GridCell, None, None]:
    """Train every cell that is not finished, and yield each when it has ended.

    A finished cell is never repeated, an interrupted one is resumed from its checkpoint, a failed one is skipped
    unless `retry_failed`. Images are decoded, and frozen stages computed, once, before the first cell starts; cells on
    images that cannot be used fail. A phase of training that several cells begin with is trained once: these cells come
    after the one that trains it.
    """
    write_index(out, cells)
    if retry_failed:
        for cell in cells:
            cell.run.forget_failure()
    _require_same_images(cells)
    warn_of_reused_runs(out, [(cell.run, cell.config) for cell in cells if cell.run.exists])
    left = [cell for cell in cells if not cell.run.ended]
    unusable = _prepare(left, progress)
    yield from unusable
    left = [cell for cell in left if cell not in unusable]
    for cell in left:
        cell.keep_plan()
    runs = {cell.run.path for cell in left}

    def waits(cell: GridCell) -> bool:
        return cell.first_phase is not None and cell.first_phase.path in runs

    yield from executor.submit([cell for cell in left if not waits(cell)])
    if later := [cell for cell in left if waits(cell)]:
        yield from executor.submit(later)


def _prepare(cells: Sequence[GridCell], progress: Progress) -> list[GridCell]:
    """Make what cells share on disk. Fails the cells whose data cannot be used, and returns them; raises if all are."""
    sharing: dict[str, list[GridCell]] = {}
    for cell in cells:
        sharing.setdefault(shared_data_key(cell.config), []).append(cell)
    failed: list[tuple[GridCell, LtdsError]] = []
    for together in sharing.values():
        config = together[0].config
        try:
            prepare_shared_data(config, Manifest.read(Path(config.data.root)), progress)
        except LtdsError as error:
            failed += [(cell, error) for cell in together]
    if failed and len(failed) == len(cells):
        raise failed[0][1]
    for cell, problem in failed:
        fail(cell.run, f"{type(problem).__name__}: {problem}")
    return [cell for cell, _ in failed]


def _require_same_images(cells: Sequence[GridCell]) -> None:
    """Refuse to put runs on other images beside those that are here already: the directory's name does not tell."""
    opened: dict[str, tuple[Manifest, dict[str, str]]] = {}
    for cell in cells:
        if cell.run.exists and not cell.config.data.features:
            root = cell.config.data.root
            if root not in opened:
                manifest = Manifest.read(Path(root))
                content = image_content(cell.config, manifest)
                opened[root] = manifest, {CONTENT_KEY: content} if content else {}
            manifest, now = opened[root]
            before = recorded_checksums(readable_environment(cell.run))
            require_same_data(cell.run.path, before, now, cell.config, manifest)
