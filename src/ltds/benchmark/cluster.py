"""Cells on a Ray cluster: one task a cell, started again elsewhere when its node is lost."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ltds.benchmark.grid import Cell
from ltds.benchmark.work import fail, work
from ltds.core.errors import ConfigError

RETRIES = 3  # of a task whose node or process was lost


class Cluster:
    """Ray at `address`: "auto" for the cluster of this machine, "local" to start one here, or HOST:PORT.

    The dataset lies on a path that every node sees. So do the run directories, and then a lost node's cell goes on
    elsewhere from its checkpoint; or, with `fetch`, a node trains on its own disk and sends the finished run back,
    and a lost node's cell begins anew. `cpus` and `gpus` are what one run asks Ray for.
    """

    def __init__(self, address: str, cpus: int = 1, gpus: float = 0.0, fetch: bool = False) -> None:
        self.address, self.cpus, self.gpus, self.fetch = address, cpus, gpus, fetch

    def submit(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Each cell when it is over, done or failed."""
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            self._connect(ray)
        try:
            job = _fetched_cell if self.fetch else _shared_cell
            task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=RETRIES)(job)
            waiting = {self._send(task, cell): cell for cell in cells}
            while waiting:
                (ready,), _ = ray.wait(list(waiting), num_returns=1)
                cell = waiting.pop(ready)
                try:
                    sent = ray.get(ready)
                    if sent is not None:
                        _unpack(sent, cell.run.path)
                except ray.exceptions.RayError as error:
                    fail(cell.run, f"{type(error).__name__}: lost {RETRIES + 1} times. {error}")
                yield cell
        finally:
            if started:
                ray.shutdown()

    def _send(self, task: Any, cell: Cell) -> Any:
        named = task.options(name=cell.run.path.name)
        return named.remote(str(cell.run.path.resolve()), cell.config.to_dict(), self.cpus)

    def _connect(self, ray: Any) -> None:
        settings: dict[str, Any] = {"address": None if self.address == "local" else self.address}
        try:
            ray.init(**settings, log_to_driver=False, include_dashboard=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"Expected a Ray cluster at '{self.address}', but got: {error} "
                "Start one with 'ray start --head', or use --ray local."
            ) from error


def _shared_cell(path: str, config: dict[str, Any], threads: int) -> None:
    """What a node does. A lost node may not have noticed it yet: the lock on the run keeps two from training it."""
    work(Path(path), config, threads)


def _fetched_cell(path: str, config: dict[str, Any], threads: int) -> bytes:
    """The same on the node's own disk: the run directory as a tar archive."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / Path(path).name
        work(run, config, threads)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(run, arcname=".")
        return packed.getvalue()


def _unpack(sent: bytes, path: Path) -> None:
    """Put a run that a node sent in its place, whole or not at all; nothing in it can leave its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetched-") as folder:
        with tarfile.open(fileobj=io.BytesIO(sent)) as archive:
            archive.extractall(folder, filter="data")
        if path.exists():  # of an earlier try that failed
            shutil.rmtree(path)
        os.replace(folder, path)
        Path(folder).mkdir()  # what the end of the block removes


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "Expected Ray for --ray, but it is not installed. Type: pip install 'ltds[ray]', or use --jobs alone."
        ) from error
    return ray
