"""Files of tensors: what one can hold, and reading one from anywhere, which cannot run code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def read_tensors(file: Path) -> object:
    """What the file holds: .safetensors, or what torch.save wrote, as tensors only. Each format has its own errors."""
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(file)
    import torch

    return torch.load(file, map_location="cpu", weights_only=True)


def packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as a file of safetensors can hold them: in the host's memory, contiguous, each with its own memory.

    A layer under two names, tied weights and buffers that are parts of others share theirs. Loading by name gives each
    of them the same values.
    """
    result: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, value in tensors.items():
        here = value.detach().cpu().contiguous()
        start = here.untyped_storage().data_ptr()
        result[name] = here.clone() if start in memory else here
        memory.add(start)
    return result
