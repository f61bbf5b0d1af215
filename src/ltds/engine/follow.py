"""The side of every rank but the first: train what the first rank trains, write nothing."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import torch
from torch.distributed import FileStore, Store  # type: ignore[attr-defined]

from ltds.core.errors import DataError, LtdsError
from ltds.core.processor import retain_memory
from ltds.core.ranks import LostRankError, Ranks
from ltds.core.runs import RunDirectory
from ltds.core.worker import exit_with_parent
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import resolve
from ltds.engine.loop import train
from ltds.engine.team import RankTeam, connected, launched, launched_team, threads_of_rank, wait_for
from ltds.engine.threads import threads_restored

Arguments = ParamSpec("Arguments")


def run_follower(parent: str, rank: str, world: str, store: str) -> None:
    """The whole life of a rank that the first rank started as a process."""
    exit_with_parent(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ranks = Ranks(int(rank), int(world), int(rank))
    retain_memory()
    torch.set_num_threads(threads_of_rank(ranks.world))
    try:
        follow(RankTeam(ranks, FileStore(store, ranks.world)))
    except (LtdsError, SystemExit):  # the first rank reports it
        os._exit(1)
    sys.stderr.flush()
    os._exit(0)  # nothing to save


def follow(team: RankTeam) -> Path:
    """Take part in job after job, until the first rank has no more; returns the path of the run that it trained."""
    warnings.simplefilter("ignore")  # the first rank warns of the same
    assert team.store is not None
    while True:
        team.jobs += 1
        job = json.loads(wait_for(team.store, f"job/{team.jobs}"))
        if "end" in job:
            return Path(job["end"])
        try:
            _take_part(team, team.store, job)
        except LostRankError:  # another rank is the cause
            raise
        except Exception as error:
            words = str(error) if isinstance(error, LtdsError) else f"{type(error).__name__}: {error}"
            team.store.set(f"error/{team.jobs}/{team.ranks.rank}", words)
            raise


@threads_restored()
def _take_part(team: RankTeam, store: Store, job: dict[str, Any]) -> None:
    config = resolve(job["config"])  # the first rank has asked whether its code may be imported
    manifest = Manifest.read(Path(config.data.root))
    if manifest.identity != job["data"]:
        raise DataError(
            f"Expected the dataset in '{manifest.root}' to be the one that the first rank trains on, but got another. "
            "Copy it from the machine of the first rank; a Manifest made in Python must be written first."
        )
    session = assemble(config, manifest, ranks=team.ranks)
    store.set(f"here/{team.jobs}/{team.ranks.rank}", "")
    with connected(team.ranks, store, team.jobs, config):
        train(session, RunDirectory(Path(job["run"])))


def on_all_ranks(function: Callable[Arguments, RunDirectory]) -> Callable[Arguments, RunDirectory]:
    """Where torchrun has started this process and others: the first calls the function, the others follow it."""

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> RunDirectory:
        if launched() is None:
            return function(*args, **kwargs)
        team = launched_team()
        if not team.ranks.first:
            return RunDirectory(follow(team))
        run = function(*args, **kwargs)
        team.jobs += 1
        team.post({"end": str(run.path)})
        return run

    return call
