"""Where a model trains and predicts."""

from __future__ import annotations

import torch

from ltds.core.errors import ConfigError
from ltds.core.ranks import ALONE, Ranks


def choose_device(name: str, ranks: Ranks = ALONE) -> torch.device:
    """The device of this name; "auto" takes an accelerator where there is one. Each of several ranks has its GPU."""
    device = _choose_device(name)
    if ranks.alone or device.type == "cpu":
        return device
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    if ranks.local >= gpus:
        raise ConfigError(
            f"Expected a CUDA device for each rank of this machine, but got {gpus} of them for rank {ranks.rank}. "
            "Use fewer ranks, or run.device=cpu.",
            settings=["run.device=cpu"],
        )
    return torch.device("cuda", ranks.local)


def _choose_device(name: str) -> torch.device:
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name not in ("auto", *available):
        raise ConfigError(
            f"Expected argument 'device' to be one of auto, {', '.join(available)}, but got '{name}'. Use 'auto': it "
            "takes a GPU if there is one. The environment variable CUDA_VISIBLE_DEVICES chooses one of several GPUs.",
            arguments=["device=auto"],
        )
    if name == "auto":
        return torch.device(next((d for d in ("cuda", "mps") if available[d]), "cpu"))
    if not available[name]:
        usable = ", ".join(d for d, there in available.items() if there)
        raise ConfigError(
            f"Expected run.device to be a device of this machine ({usable}), but got '{name}'. Use run.device=auto."
        )
    return torch.device(name)
