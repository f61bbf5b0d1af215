"""The ranks of a run as processes: the first one starts the others, tells them what to train, and ends them.

A job is JSON in a store that all ranks read: {"config": {...}, "run": PATH, "data": IDENTITY}, or {"end": PATH}. A rank
that fails leaves its error there. Where `torchrun` started all ranks, its store is used; else a file in a private
folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from ltds.core.errors import TrainingError
from ltds.core.processor import chosen_threads, cores
from ltds.core.ranks import ALONE, LostRankError, Ranks
from ltds.engine.config import RunConfig
from ltds.engine.device import choose_device
from ltds.engine.followers import Followers
from ltds.engine.threads import threads_restored

POLL_SECONDS = 0.02
LONGEST_POLL = 0.5
LAST_WORDS = 3.0  # seconds that a rank which has failed may take to say why


@dataclass
class RankTeam:
    """The ranks as seen by one of them. `followers`: the processes that this one started, if it did."""

    ranks: Ranks = ALONE
    store: Store | None = None
    followers: Followers | None = None
    jobs: int = field(default=0, init=False)

    @contextmanager
    def together(self, config: RunConfig, path: Path, data: str) -> Iterator[None]:
        """Have the other ranks train this run, too; inside the block all ranks can talk to each other.

        `data`: the identity of the dataset, which each rank reads from its own disk.
        """
        if self.store is None:
            yield
            return
        self.jobs += 1
        self.post({"config": config.to_dict(), "run": str(path.resolve()), "data": data})
        try:
            for rank in range(1, self.ranks.world):
                self._wait(f"here/{self.jobs}/{rank}")
            with connected(self.ranks, self.store, self.jobs, config):
                yield
        except LostRankError as error:
            raise TrainingError(self._explained(error, config), resume=path) from error

    def post(self, job: dict[str, Any]) -> None:
        assert self.store is not None
        self.store.set(f"job/{self.jobs}", json.dumps(job))

    def _wait(self, key: str) -> None:
        """Wait for a rank as long as it takes to prepare its data, unless a rank fails."""
        assert self.store is not None
        wait_for(self.store, key, meanwhile=self._refuse_failure)

    def _refuse_failure(self) -> None:
        if self._errors() or (self.followers is not None and self.followers.ended()):
            raise LostRankError("it ended before the first step")

    def _errors(self) -> list[str]:
        assert self.store is not None
        keys = [(rank, f"error/{self.jobs}/{rank}") for rank in range(1, self.ranks.world)]
        return [f"rank {rank}: {self.store.get(key).decode()}" for rank, key in keys if self.store.check([key])]

    def _explained(self, error: LostRankError, config: RunConfig) -> str:
        """Which rank was lost and why, as far as can be known."""
        until = time.monotonic() + LAST_WORDS
        causes: list[str] = []
        while not causes and time.monotonic() < until:
            causes = self._errors() or (self.followers.ended() if self.followers else [])
            time.sleep(POLL_SECONDS)
        silent = f"no rank has ended, but one did not answer for {config.run.rank_timeout} s ({error})"
        return (
            f"Expected all {self.ranks.world} ranks to train to the end, but got: {'; '.join(causes) or silent}. "
            "All ranks have ended. Checkpoints are kept: resume the run, with any number of ranks."
        )


@contextmanager
def team_for(config: RunConfig) -> Iterator[RankTeam]:
    """The ranks that the settings ask for, or those that torchrun has started.

    Their processes end with the block, and the number of threads is then what it was before.
    """
    with threads_restored():
        if launched() is not None:
            yield launched_team()
        elif config.run.ranks == 1:
            yield RankTeam()
        else:
            ranks = Ranks(0, config.run.ranks)
            last = Ranks(ranks.world - 1, ranks.world, ranks.world - 1)
            choose_device(config.run.device, last)  # refuses too few GPUs
            torch.set_num_threads(threads_of_rank(ranks.world))
            with Followers.started(ranks.world) as followers:
                yield RankTeam(ranks, followers.store, followers)


def threads_of_rank(world: int) -> int:
    """Threads of each rank, where no setting says otherwise: the cores divided by the ranks, or as the user chose."""
    threads = torch.get_num_threads()
    if chosen_threads():
        return threads
    return max(1, min(threads, cores()) // world)


def launched() -> Ranks | None:
    """This process among those that torchrun has started; None where it did not, or started one alone."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        return None
    return Ranks(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))


def follows() -> bool:
    """Whether torchrun has started this process to follow another, which speaks for all."""
    ranks = launched()
    return ranks is not None and not ranks.first


_launched: list[RankTeam] = []


def launched_team() -> RankTeam:
    """The team of torchrun's ranks: one for the life of the process."""
    if not _launched:
        ranks = launched()
        assert ranks is not None
        store, _, _ = next(rendezvous("env://"))
        _launched.append(RankTeam(ranks, PrefixStore("ltds", store)))
    return _launched[0]


@contextmanager
def connected(ranks: Ranks, store: Store, number: int, config: RunConfig) -> Iterator[None]:
    """A process group of all ranks: gloo on CPUs, NCCL on GPUs."""
    device = choose_device(config.run.device, ranks)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=PrefixStore(f"group/{number}", store),
            rank=ranks.rank,
            world_size=ranks.world,
            timeout=timedelta(seconds=config.run.rank_timeout),
        )
    except RuntimeError as error:
        raise LostRankError(f"a rank did not join: {error}") from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def wait_for(store: Store, key: str, meanwhile: Callable[[], None] = lambda: None) -> bytes:
    """The value of a key, once it is there. Asks seldom after a while: a job may come in an hour."""
    pause = POLL_SECONDS
    while not store.check([key]):
        meanwhile()
        time.sleep(pause)
        pause = min(LONGEST_POLL, pause * 1.1)
    return bytes(store.get(key))
