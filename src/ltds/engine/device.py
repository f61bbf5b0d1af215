"""Where a model trains and predicts."""

from __future__ import annotations

import torch

from ltds.core.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """The device of this name; "auto" takes an accelerator where there is one."""
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device(next((d for d in ("cuda", "mps") if available[d]), "cpu"))
    if not available[name]:
        usable = ", ".join(d for d, there in available.items() if there)
        raise ConfigError(
            f"Expected run.device to be a device of this machine ({usable}), but got '{name}'. Use run.device=auto."
        )
    return torch.device(name)
