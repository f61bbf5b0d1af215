"""`ltds doctor`: what is installed, what the machine has, and where files go."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import ltds
from ltds.core.installation import MAIN, extras, installed_version
from ltds.core.processor import cores, processor_name
from ltds.core.text import inert

GB = 1e9


def doctor() -> None:
    """Show what is installed, which devices there are, and where files go. Please add this to a report of a problem.

    Example: ltds doctor
    """
    for title, lines in (
        ("Versions", _versions()),
        ("Devices", _devices()),
        ("Extras", _extras()),
        ("Places", _places()),
    ):
        print(title)
        for line in lines:
            print(inert(f"  {line}"))


def _versions() -> Iterator[str]:
    yield f"ltds {ltds.__version__} in {Path(ltds.__file__).parent}"
    yield f"Python {platform.python_version()} ({sys.executable}) on {platform.platform()}"
    yield ", ".join(f"{name} {installed_version(name) or 'missing'}" for name in MAIN)


def _devices() -> Iterator[str]:
    try:
        import torch
    except Exception as error:  # a damaged installation can fail in any way
        yield f"torch cannot be loaded: {type(error).__name__}: {error}"
        yield "Install it again: pip install --force-reinstall torch"
        return
    threads = torch.get_num_threads()
    instructions = torch.backends.cpu.get_cpu_capability()
    yield (
        f"CPU: {processor_name()} ({instructions}), {cores()} cores for this process, of {os.cpu_count()} in the "
        f"machine; torch uses {threads} threads"
    )
    yield f"bfloat16 on this CPU: {_bfloat16()}"
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        yield f"GPU {index}: {properties.name}, {properties.total_memory / GB:.0f} GB (cuda)"
    if torch.backends.mps.is_available():
        yield "GPU: Apple (mps)"
    if torch.cuda.device_count() == 0:
        yield _why_no_cuda(torch.version.cuda)
    yield from _gpu_against_cpu()


def _gpu_against_cpu() -> Iterator[str]:
    """One line on the device that training would use, if it is not a CPU: torch has had faults on some."""
    from ltds.engine.device import choose_device
    from ltds.engine.device_check import ALLOWED, gradient_difference

    device = choose_device("auto")
    if device.type == "cpu":
        return
    try:
        difference = gradient_difference(device)
    except Exception as error:  # drivers fail in any way
        yield f"a step of training on {device.type} fails: {type(error).__name__}: {error}. Use --device cpu."
        return
    verdict = "as it should be" if difference <= ALLOWED else "WRONG: use another version of torch, or --device cpu"
    yield f"gradients on {device.type} differ from those on the CPU by {difference:.2g} of their length: {verdict}"


def _bfloat16() -> str:
    import torch

    from ltds.engine.precision import amx_works, has_bfloat16

    if has_bfloat16(torch.device("cpu")):
        return "yes; run.precision=auto times it against float32"
    if not amx_works():
        return "no: it reports AMX, but AMX fails in torch; ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 leaves AMX out"
    return "no; run.precision=auto is float32"


def _why_no_cuda(built_for: str | None) -> str:
    if built_for is None:
        return "CUDA: this torch was built without it. For an NVIDIA GPU install another build of torch (pytorch.org)."
    return f"CUDA: torch was built for CUDA {built_for}, but finds no GPU. Is there a driver (nvidia-smi)?"


def _extras() -> Iterator[str]:
    found = extras()
    if not found:
        yield "unknown: ltds is not installed as a package. Install it: pip install ."
    width = max((len(extra.name) for extra in found), default=0)
    for extra in found:
        state = f"missing; to add it: pip install 'ltds[{extra.name}]'" if extra.missing else "there"
        purpose = f" ({extra.purpose})" if extra.purpose else ""
        yield f"{extra.name.ljust(width)}  {state}{purpose}"


def _places() -> Iterator[str]:
    from ltds.data.datasets.opening import data_home

    home = data_home()
    datasets = sum(1 for _ in home.glob("*/manifest.json")) if home.is_dir() else 0
    chosen = "LTDS_DATA" if "LTDS_DATA" in os.environ else "set LTDS_DATA for another place"
    yield f"datasets that are built: {home.resolve()} ({datasets} there; {chosen})"
    yield "decoded images and outputs of frozen networks: .cache in the folder of each dataset; may be deleted"
    hub = Path(os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")))  # "~" where nobody has a home
    yield f"text encoders: {hub} ({'there' if hub.is_dir() else 'not there'}; HF_HOME)"
    yield f"runs: {Path('runs').resolve()}, unless --out says otherwise"
    yield f"free disk space here: {shutil.disk_usage('.').free / GB:.0f} GB"
