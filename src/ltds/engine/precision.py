"""In which precision the backbones of a run compute: as the settings say, or as a probe decides."""

from __future__ import annotations

import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError, expected
from ltds.core.runs import RunDirectory
from ltds.engine.config import RunConfig
from ltds.engine.settings import AskedPrecision
from ltds.nn.precision import Precision, compute_in

WORTH_IT = 0.95  # of the time of float32: a smaller gain is within the noise of the probe
TURNS = 3
AMX_CODE = """
import torch
images, weights = torch.ones(8, 16, 8, 8, dtype=torch.bfloat16), torch.ones(16, 16, 1, 1, dtype=torch.bfloat16)
torch.conv2d(images.requires_grad_(), weights.requires_grad_(), stride=2).sum().backward()
torch.ones(64, 64, dtype=torch.bfloat16) @ torch.ones(64, 64, dtype=torch.bfloat16)
"""


def choose_precision(
    asked: AskedPrecision, backbone: nn.Module, device: torch.device, inputs: Callable[[], Tensor]
) -> Precision:
    """What "auto" means for this backbone on this device, for batches such as `inputs()`.

    On a CUDA device it is bfloat16 where the device has it. On a processor that has it, both are timed for a moment.
    """
    if asked != "auto":
        return asked
    learns = any(parameter.requires_grad for parameter in backbone.parameters())
    if not has_bfloat16(device) or not learns:  # a backbone that is frozen whole has no backward pass to time
        return "float32"
    return probe(backbone, inputs()) if device.type == "cpu" else "bfloat16"


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies in bfloat16; elsewhere it is imitated, at many times the time of float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and any(map(_cpu_has, ("avx512_bf16", "amx_bf16", "bf16"))) and amx_works()


def require_working(precision: Precision, device: torch.device) -> None:
    """Refuse a precision in which this processor would end the process without a word."""
    if precision == "bfloat16" and device.type == "cpu" and not amx_works():
        remedy = "Compute in float32, or set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16."
        got = "one on which these products end the process (it reports AMX, but AMX fails in torch, as in some clouds)"
        rule = "one that computes products in bfloat16"
        raise ConfigError(expected("the processor", rule, got, remedy), settings=["run.precision=float32"])


@cache
def amx_works() -> bool:
    """Whether AMX, if the processor reports it, works in torch; tried in a process of its own, which may be killed.

    Some virtual machines report AMX, but not how its tiles are to be configured. oneDNN then uses illegal instructions.
    """
    if not _cpu_has("amx_tile"):
        return True
    done = subprocess.run([sys.executable, "-P", "-c", AMX_CODE], stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode >= 0  # negative: ended by a signal


def _cpu_has(capability: str) -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in older torch
    return bool(capabilities.get(capability))


def probe(backbone: nn.Module, inputs: Tensor) -> Precision:
    """Whichever takes less time for a forward and a backward pass, on a copy of the backbone."""
    both = {name: nn.ModuleDict({"backbone": copy.deepcopy(backbone)}).train() for name in ("float32", "bfloat16")}
    compute_in("bfloat16", both["bfloat16"])
    times: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(TURNS + 1):
        for name, network in both.items():
            start = time.perf_counter()
            network["backbone"](inputs).sum().backward()
            times[name].append(time.perf_counter() - start)
    exact, short = (statistics.median(times[name][1:]) for name in ("float32", "bfloat16"))  # the first warms up
    return "bfloat16" if short < WORTH_IT * exact else "float32"


def recorded_precision(run: RunDirectory) -> Precision:
    """The precision that a run was started in; runs of older versions are float32."""
    stored = run.read_environment().get("precision") if run.environment_file.is_file() else None
    return "bfloat16" if stored == "bfloat16" else "float32"


def with_precision(config: RunConfig, precision: Precision) -> RunConfig:
    """The config for the other ranks of a run, for which the first has decided."""
    return replace(config, run=config.run.model_copy(update={"precision": precision}))
