"""The processes of ranks 1, 2, ... on this machine, which rank 0 starts and ends."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torch.distributed import FileStore, Store  # type: ignore[attr-defined]

from ltds.core.parallel import end_processes, start_python

STORE = "store"
PATIENCE = 5.0  # seconds in which a rank may end by itself
TAIL = 600  # characters of what a rank printed before it ended
LOOPBACKS = {"lo", "lo0"}  # the loopback device as Linux and macOS call it; on Windows gloo does without its name
CODE = "import sys; sys.path[:] = sys.argv[5:]; from ltds.engine import follow; follow.run_follower(*sys.argv[1:5])"


@dataclass
class Followers:
    """Ranks 1 to world - 1 as processes, and the store through which they get their jobs."""

    folder: Path
    store: Store
    processes: list[subprocess.Popen[bytes]]

    @classmethod
    @contextmanager
    def started(cls, world: int) -> Iterator[Followers]:
        """They end with the block, and with this process however it ends."""
        with tempfile.TemporaryDirectory(prefix="ltds-ranks-") as name, _local_network():
            folder = Path(name)
            followers = cls(folder, FileStore(str(folder / STORE), world), [])
            try:
                for rank in range(1, world):
                    followers.processes.append(_start(rank, world, folder))
                yield followers
            finally:
                followers.stop()

    def ended(self) -> list[str]:
        """A description of each process that has ended."""
        codes = [(rank, process.poll()) for rank, process in enumerate(self.processes, 1)]
        return [f"rank {rank} {_how(code)}{self._last_words(rank)}" for rank, code in codes if code is not None]

    def _last_words(self, rank: int) -> str:
        text = _output(self.folder, rank).read_text(encoding="utf-8", errors="replace").strip()
        return f", after it printed: {text[-TAIL:]}" if text else ""

    def stop(self) -> None:
        """End those that still run."""
        end_processes(self.processes, PATIENCE)


def _start(rank: int, world: int, folder: Path) -> subprocess.Popen[bytes]:
    """A process that finds modules where this one does. Ctrl-C does not reach it: it is for the first rank."""
    arguments = [str(os.getpid()), str(rank), str(world), str(folder / STORE)]
    with _output(folder, rank).open("wb") as output:
        return start_python(CODE, arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def _output(folder: Path, rank: int) -> Path:
    return folder / f"output-{rank}"


def _how(code: int) -> str:
    return f"was ended by signal {-code} (9 is often lack of memory)" if code < 0 else f"ended with exit code {code}"


@contextmanager
def _local_network() -> Iterator[None]:
    """Let gloo connect ranks of one machine through its loopback device, whatever its name resolves to."""
    before = os.environ.get("GLOO_SOCKET_IFNAME")
    for _, device in socket.if_nameindex():
        if device in LOOPBACKS:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", device)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("GLOO_SOCKET_IFNAME", None)
