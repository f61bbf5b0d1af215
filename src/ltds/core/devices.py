"""What devices do not have in common: how to copy to them, and their widest numbers."""

from __future__ import annotations

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; to CUDA through pinned memory, so that copying overlaps with computing.

    Only there: Apple's GPUs may read the source of a copy that does not wait when its memory holds something else.
    """
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def widest_float(device: torch.device) -> torch.dtype:
    """float64 where the device has it: Apple's GPUs do not."""
    return torch.float64 if device.type in ("cpu", "cuda") else torch.float32
