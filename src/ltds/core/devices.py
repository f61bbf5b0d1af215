"""What devices do not have in common: how to copy to them, their widest numbers, their layout of images."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; from the host to CUDA through pinned memory: the host does not wait for such a copy.

    Only there: Apple's GPUs may read the source of a copy that does not wait when its memory holds something else.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def widest_float(device: torch.device) -> torch.dtype:
    """float64 where the device has it: Apple's GPUs do not."""
    return torch.float64 if device.type in ("cpu", "cuda") else torch.float32


def to_layout(module: nn.Module, device: torch.device) -> None:
    """Lay the module's weights out as its convolutions are fastest on the device; their outputs follow them.

    That is channels last: on a CPU it takes 0.67 to 0.9 of the time. On Apple's GPUs torch computes BatchNorm's
    gradients wrong in it.
    """
    layout = torch.channels_last if device.type in ("cpu", "cuda") else torch.contiguous_format
    module.to(memory_format=layout)  # type: ignore[call-overload]
