"""The processor that this process may use: how many cores, and how threads and memory are handled on them."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
CPU_INFO = Path("/proc/cpuinfo")

THREADS_CHOSEN = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # how users say it, also to torch

# A thread of OpenMP that waits for the others spins for some 20 microseconds and then sleeps. On a busy machine a
# spinning thread takes the core from the very thread it waits for; on an idle one, waking up after a short wait costs
# more than the wait (benchmarks/threads.py). GNU's OpenMP, in torch for Linux, reads the second variable, of which
# 100,000 are about a millisecond; LLVM's and Intel's, in torch for other systems, count whole milliseconds.
WAIT_POLICY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000", "KMP_BLOCKTIME": "0"}

MPS_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"

# Parameters of mallopt, from glibc's malloc.h: freed memory stays with the process, so that the tensors of the next
# step need no new pages. The values are those of benchmarks/step.py.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
RETAINED = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1), (M_TOP_PAD, 256 * 2**20))  # -1: never trim


def cores() -> int:
    """Cores that this process may use: by its affinity and its container's quota, not all that the machine has."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(int(quota) for quota in _quotas())]))


def chosen_threads() -> int:
    """How many threads the user wants a process to have, by the environment; 0: it does not say."""
    for name in THREADS_CHOSEN:
        outermost = os.environ.get(name, "").split(",")[0].strip()  # OpenMP's may be a list, for nested parallelism
        if outermost.isdecimal() and int(outermost):
            return int(outermost)
    return 0


def processor_name() -> str:
    """As the system calls it: "AMD EPYC 7763 64-Core Processor", or what is known instead."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def prepare_process() -> None:
    """Set how this process and those it starts wait and keep memory; to be called before torch is imported."""
    set_environment()
    retain_memory()


def set_environment() -> None:
    """What torch and OpenMP read when they are imported, unless the user chose otherwise.

    Waiting threads sleep soon. What torch does not have for Apple's GPUs (depending on its version, the derivative of
    `torch.cdist`, for example) is computed on the CPU instead of being an error.
    """
    if "torch" in sys.modules:
        return
    if not any(name in os.environ for name in WAIT_POLICY):
        os.environ.update(WAIT_POLICY)
    if sys.platform == "darwin":
        os.environ.setdefault(MPS_FALLBACK, "1")


def retain_memory() -> bool:
    """Keep freed memory for later use, with glibc's malloc and unless the user tuned it; whether that was done."""
    tuned = "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ)
    if tuned or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return False
    return all(mallopt(parameter, value) == 1 for parameter, value in RETAINED)


def _quotas() -> Iterator[float]:
    """Processor time per second that the control groups of this process and those around them allow."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "" or "cpu" in controllers.split(","):
            place = PurePosixPath(path)
            for folder in (place, *place.parents):
                quota = _quota(CGROUPS / str(folder).lstrip("/"), controllers)
                if quota is not None:
                    yield quota


def _quota(folder: Path, controllers: str) -> float | None:
    """The limit of one control group, of version 2 (no controllers are named) or 1; None: no limit."""
    try:
        if controllers == "":
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            place = CGROUPS / controllers / folder.relative_to(CGROUPS)
            quota, period = ((place / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        allowed = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" is not a number
        return None
    return allowed if allowed > 0 else None
