"""Cores by affinity and quota, and what is set before torch is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ltds.core import processor
from ltds.core.processor import MPS_FALLBACK, THREADS_CHOSEN, WAIT_POLICY, chosen_threads, cores, retain_memory

CODE = """
import os, sys
from ltds.core.processor import WAIT_POLICY, prepare_process
prepare_process()
print(*(os.environ.get(name) for name in WAIT_POLICY))
"""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Eight cores, and a folder in place of the control groups of the system."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(processor, "CGROUPS", tmp_path)
    monkeypatch.setattr(processor, "OWN_CGROUPS", tmp_path / "own")
    return tmp_path


def test_without_control_groups_affinity_counts(machine: Path) -> None:
    assert cores() == 8


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("max 100000", 8), ("350000 100000", 3), ("50000 100000", 1), ("1600000 100000", 8), ("broken", 8)],
)
def test_quota_of_version_2(machine: Path, quota: str, expected: int) -> None:
    (machine / "own").write_text("0::/pod/box\n")
    (machine / "pod" / "box").mkdir(parents=True)
    (machine / "pod" / "box" / "cpu.max").write_text(quota + "\n")
    assert cores() == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, 0),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"MKL_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "2"}, 3),
        ({"OMP_NUM_THREADS": "many"}, 0),
        ({"OMP_NUM_THREADS": "0"}, 0),
    ],
)
def test_threads_that_the_user_chose(monkeypatch: pytest.MonkeyPatch, said: dict[str, str], expected: int) -> None:
    for name in THREADS_CHOSEN:
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert chosen_threads() == expected


def test_smallest_quota_of_all_groups_around(machine: Path) -> None:
    (machine / "own").write_text("0::/pod/box\n")
    (machine / "pod" / "box").mkdir(parents=True)
    (machine / "pod" / "box" / "cpu.max").write_text("600000 100000\n")
    (machine / "pod" / "cpu.max").write_text("200000 100000\n")
    assert cores() == 2


@pytest.mark.parametrize(("quota", "expected"), [("-1", 8), ("400000", 4)])
def test_quota_of_version_1(machine: Path, quota: str, expected: int) -> None:
    (machine / "own").write_text("5:memory:/box\n3:cpu,cpuacct:/box\n")
    folder = machine / "cpu,cpuacct" / "box"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text(quota + "\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    assert cores() == expected


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({}, "PASSIVE 2000 0"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None None"),
        ({"GOMP_SPINCOUNT": "9"}, "None 9 None"),
    ],
)
def test_wait_policy_unless_the_user_chose_one(given: dict[str, str], printed: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in WAIT_POLICY}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment | given, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == printed


def test_memory_is_not_retained_where_the_user_tuned_malloc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not retain_memory()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_freed_memory_stays_with_the_process() -> None:
    code = """
import sys, resource
from pathlib import Path
from ltds.core.processor import retain_memory
import ctypes
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
assert not "retain" in sys.argv or retain_memory()
c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p
p = c.malloc(ctypes.c_size_t(64 * 2**20)); ctypes.memset(p, 1, 64 * 2**20); full = resident()
c.free(ctypes.c_void_p(p))
print((full - resident()) >> 20)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    freed = [
        int(subprocess.run([sys.executable, "-c", code, word], env=environment, capture_output=True, check=True).stdout)
        for word in ("plain", "retain")
    ]
    assert freed[0] >= 63
    assert freed[1] == 0


def test_the_name_of_the_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(
        "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\n\nprocessor\t: 1\nmodel name\t: Some CPU @ 2.0GHz\n"
    )
    monkeypatch.setattr(processor, "CPU_INFO", info)
    assert processor.processor_name() == "Some CPU @ 2.0GHz"
    info.write_text("Hardware\t: no such line\n")
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert processor.processor_name() == "riscv64"
    monkeypatch.setattr(processor, "CPU_INFO", tmp_path / "none")
    monkeypatch.setattr("platform.processor", lambda: "arm")
    assert processor.processor_name() == "arm"


@pytest.mark.parametrize(("given", "printed"), [({}, "1"), ({MPS_FALLBACK: "0"}, "0")])
def test_what_apples_gpus_lack_is_computed_on_the_cpu(given: dict[str, str], printed: str) -> None:
    code = f"import sys; sys.platform = 'darwin'\n{CODE}\nprint(os.environ.get('{MPS_FALLBACK}'))"
    environment = {name: value for name, value in os.environ.items() if name != MPS_FALLBACK} | given
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == printed
