"""Files of tensors from anywhere: reading one cannot run code."""

from __future__ import annotations

from pathlib import Path


def read_tensors(file: Path) -> object:
    """What the file holds: .safetensors, or what torch.save wrote, as tensors only. Each format has its own errors."""
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(file)
    import torch

    return torch.load(file, map_location="cpu", weights_only=True)
