"""Cells on a Ray cluster: one task per cell, started again on another node when its node is lost."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ltds.benchmarking.cells import GridCell
from ltds.benchmarking.run_cell import fail, run_cell
from ltds.core.errors import ConfigError
from ltds.core.files import rename

RETRIES = 3  # of a task whose node or process was lost


class RayExecutor:
    """Ray at `address`: "auto" for the cluster of this machine, "local" to start one here, or HOST:PORT.

    Every node must see the dataset under the same path. By default the run directories are on such a path too, and the
    cell of a lost node is resumed on another one from its checkpoint. With `fetch` a node trains on its local disk and
    sends the finished run back; the cell of a lost node then starts again from the beginning.
    A run requests `gpus` from Ray, and `cpus` for each of its ranks.
    """

    def __init__(self, address: str, cpus: int = 1, gpus: float = 0.0, fetch: bool = False) -> None:
        self.address, self.cpus, self.gpus, self.fetch = address, cpus, gpus, fetch

    def submit(self, cells: Iterable[GridCell]) -> Iterator[GridCell]:
        """Yield each cell when it has ended, done or failed."""
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            self._connect(ray)
        try:
            job = _fetched_cell if self.fetch else _shared_cell
            task = ray.remote(num_gpus=self.gpus, max_retries=RETRIES)(job)
            waiting = {self._send(task, cell): cell for cell in cells}
            while waiting:
                (ready,), _ = ray.wait(list(waiting), num_returns=1)
                cell = waiting.pop(ready)
                try:
                    archive = ray.get(ready)
                    if archive is not None:
                        _unpack(archive, cell.run.path)
                        cell.keep_plan()  # the folder that had it was replaced
                except ray.exceptions.RayError as error:
                    fail(cell.run, f"{type(error).__name__}: lost {RETRIES + 1} times. {error}")
                yield cell
        finally:
            if started:
                ray.shutdown()

    def _send(self, task: Any, cell: GridCell) -> Any:
        cpus = self.cpus * cell.config.run.ranks
        named = task.options(name=cell.run.path.name, num_cpus=cpus)
        first_phase = None if cell.first_phase is None else str(cell.first_phase.path.resolve())
        return named.remote(str(cell.run.path.resolve()), cell.config.to_dict(), cpus, first_phase)

    def _connect(self, ray: Any) -> None:
        settings: dict[str, Any] = {"address": None if self.address == "local" else self.address}
        try:
            ray.init(**settings, log_to_driver=False, include_dashboard=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"Expected a Ray cluster at '{self.address}', but got: {error} "
                "Start one (see Ray's documentation), or use the address 'local'.",
                arguments=["ray=local"],
            ) from error


def _shared_cell(path: str, config: dict[str, Any], threads: int, first_phase: str | None) -> None:
    """What a node does. A lost node may still be training: the lock on the run keeps two nodes from training it."""
    run_cell(Path(path), config, threads, None if first_phase is None else Path(first_phase))


def _fetched_cell(path: str, config: dict[str, Any], threads: int, first_phase: str | None) -> bytes:
    """The same on the local disk of the node, which has no other run; returns the run directory as a tar archive."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / Path(path).name
        run_cell(run, config, threads)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(run, arcname=".")
        return packed.getvalue()


def _unpack(archive: bytes, path: Path) -> None:
    """Write the run that a node sent to `path`, whole or not at all; no file in it can end up outside of `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetched-") as folder:
        run = Path(folder) / "run"
        run.mkdir()  # permissions as the umask says; those of a temporary folder are for its owner alone
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(run, filter="data")
        if path.exists():  # from an earlier attempt that failed
            shutil.rmtree(path)
        rename(run, path)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "Expected Ray to be installed for training on a cluster, but it is not. "
            "Type: pip install 'ltds[ray]', or train on this machine."
        ) from error
    return ray
