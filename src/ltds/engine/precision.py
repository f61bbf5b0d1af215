"""In which precision the backbones of a run compute: as the settings say, or as a probe decides."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ltds.core.runs import RunDirectory
from ltds.engine.config import RunConfig
from ltds.engine.settings import AskedPrecision
from ltds.nn.precision import Precision, compute_in

WORTH_IT = 0.95  # of the time of float32: a smaller gain is within the noise of the probe
TURNS = 3


def choose_precision(
    asked: AskedPrecision, backbone: nn.Module, device: torch.device, inputs: Callable[[], Tensor]
) -> Precision:
    """What "auto" means for this backbone on this device, for batches such as `inputs()`.

    On a CUDA device it is bfloat16 where the device has it. On a processor that has it, both are timed for a moment.
    """
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    if device.type != "cpu" or not cpu_has_bfloat16():
        return "float32"
    return probe(backbone, inputs())


def cpu_has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16; elsewhere it is imitated, at many times the time of float32."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


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
