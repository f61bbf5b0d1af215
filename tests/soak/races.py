"""Eight processes that want the same cache or the same Bestiary at once, some of them killed on the way."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path

from ltds.core.rng import numpy_generator
from ltds.data.cache import ImageCache
from ltds.data.content import full_content
from ltds.data.datasets.bestiary import BestiaryConfig, build
from ltds.data.manifest import Manifest
from soak.child import finish, start
from soak.tally import Tally

PROCESSES = 8
SMALL = BestiaryConfig(size=16, n_max=4, n_min=2, val_per_pair=0, test_per_pair=1)


def race_for_cache(data: Manifest, number: int) -> Tally:
    shutil.rmtree(data.root / ".cache", ignore_errors=True)
    tally = _race(Tally("8 processes race for one cache"), partial(_cache, data.root), number)
    next_writer = finish(*start(partial(_cache, data.root, 8)))  # removes what the killed ones left
    if next_writer.kind != "ended":
        tally.fault(f"round {number}, a cache of another size: {next_writer.kind}: {next_writer.said[-2000:]}")
    left = [path.name for path in (data.root / ".cache").iterdir() if path.name.startswith(".")]
    if left:
        tally.fault(f"round {number}: left behind in .cache: {left}")
    return tally


def race_for_bestiary(folder: Path, number: int) -> Tally:
    shutil.rmtree(folder, ignore_errors=True)
    tally = _race(Tally("8 processes race for one Bestiary"), partial(_bestiary, folder), number)
    if (folder / "building.json").exists() or list(folder.rglob(".*")):
        tally.fault(f"round {number}: left behind in Bestiary")
    return tally


def _race(tally: Tally, work: partial[str], number: int) -> Tally:
    """Every second round some are killed; one more process then finds or makes it complete."""
    rng = numpy_generator(number, "soak/race")
    running = [start(work) for _ in range(PROCESSES)]
    killed = rng.permutation(PROCESSES)[:3].tolist() if number % 2 else []
    for i in killed:
        time.sleep(rng.uniform(0, 0.3))
        os.kill(running[i][0], signal.SIGKILL)  # not waited for yet, so the number still belongs to the child
    ends = [finish(*child) for child in running]
    last = finish(*start(work))
    for i, end in enumerate(ends):
        if end.kind == "signal" and i in killed:
            tally.add("killed")
        elif end.kind == "ended" and end.said == last.said:
            tally.add("got it complete")
        else:
            tally.fault(f"round {number}, process {i}: {end.kind}: {end.said[-2000:]} (last: {last.said[-500:]})")
    return tally


def _cache(root: Path, size: int = 16) -> str:
    cache = ImageCache.open(Manifest.read(root), size, workers=1)
    digest = hashlib.sha256()
    for row in range(len(cache)):
        digest.update(cache.pixels([row])[0].tobytes())
    return digest.hexdigest()


def _bestiary(folder: Path) -> str:
    return full_content(build(folder, SMALL, workers=1))
