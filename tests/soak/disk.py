"""A disk that runs full: a small file system of its own in memory, which is filled at every place of a run.

unshare --mount python -m soak.disk FOLDER SIZES     # in a mount namespace, which ends with the process
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from ltds.core.runs import RunDirectory
from ltds.data.cache import ImageCache
from ltds.data.manifest import Manifest
from ltds.engine.start import resume_run, train_new_run
from resuming import assert_same_outcome
from soak.child import import_what_it_imports, in_child
from soak.tally import Tally
from toy import toy_config, write_dataset

NAME = "disk full, then enlarged and resumed"
ENOUGH = "64m"


def full_disks(folder: Path, sizes: int) -> Tally:
    """Train and build caches on file systems of `sizes` different sizes; skipped where none can be mounted."""
    tally = Tally(NAME)
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user", "--user"])]
    try:
        possible = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    except OSError as error:
        tally.skipped = f"no unshare ({error.strerror})"
        return tally
    if possible.returncode:
        tally.skipped = f"no small file system can be mounted ({possible.stderr.decode().strip()})"
        return tally
    code = [*words, sys.executable, "-m", "soak.disk", str(folder), str(sizes)]
    done = subprocess.run(code, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    try:
        found = json.loads(done.stdout)
    except ValueError:
        tally.fault(f"full disks: exit {done.returncode}: {done.stderr[-2000:]}")
        return tally
    for end, count in found["ends"].items():
        tally.add(end, count)
    for fault in found["faults"]:
        tally.fault(fault)
    return tally


def _all_sizes(folder: Path, sizes: int) -> Tally:
    tally, small = Tally(NAME), folder / "small"
    data = write_dataset(folder / "data")
    straight = RunDirectory(folder / "straight")
    import_what_it_imports(partial(_train, data, straight))
    small.mkdir(exist_ok=True)
    needed = sum(file.stat().st_size for file in straight.path.rglob("*")) // 1024 + 200
    for number in range(sizes):
        _mount(small, f"{4 + number * needed // sizes}k")
        run = RunDirectory(small / "run")
        _until_done(tally, f"run on a disk of step {number}", partial(_train, data, run), small)
        same = in_child(partial(assert_same_outcome, straight, run))
        if same.kind != "ended":
            tally.fault(f"run on a disk of step {number}: {same.said[-2000:]}")
        subprocess.run(["umount", str(small)], check=True)
    images = sum((data.root / path).stat().st_size + 4096 for path in data.paths) // 1024
    for number in range(max(1, sizes // 4)):
        _mount(small, f"{images + 600 + 16 * number}k", inodes=2000)
        shutil.copytree(data.root, small / "data", ignore=shutil.ignore_patterns(".cache"))
        free = os.statvfs(small)
        with (small / "filler").open("wb") as stream:  # leave room for part of the cache only
            stream.write(bytes(max(0, free.f_bavail * free.f_frsize - 8192 * (1 + number))))
        _until_done(tally, f"cache on a disk of step {number}", partial(_cache, small / "data"), small)
        subprocess.run(["umount", str(small)], check=True)
    return tally


def _until_done(tally: Tally, what: str, work: partial[None], small: Path) -> None:
    """An error in words on the full disk, success on the enlarged one."""
    end = in_child(work)
    if end.kind == "refused" and ("room" in end.said or "space" in end.said):
        tally.add("ended with an error message, then the same outcome")
    elif end.kind == "ended":
        tally.add("enough space")
    else:
        tally.fault(f"{what}: {end.kind}: {end.said[-2000:]}")
    subprocess.run(["mount", "-o", f"remount,size={ENOUGH}", str(small)], check=True)
    again = in_child(work)
    if again.kind != "ended":
        tally.fault(f"{what}, enlarged: {again.kind}: {again.said[-2000:]}")


def _mount(place: Path, size: str, inodes: int = 1000) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "none", str(place)], check=True)


def _train(data: Manifest, run: RunDirectory) -> None:
    if run.exists and not run.done:
        resume_run(run)
    elif not run.done:
        train_new_run(run, toy_config(data, "dc"), data)


def _cache(root: Path) -> None:
    ImageCache.open(Manifest.read(root), 16)


if __name__ == "__main__":
    found = _all_sizes(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({"ends": found.ends, "faults": found.faults}))
