"""A pretrained network that never learns, or the first stages of one: what it computes can be computed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor, nn

from ltds.core.config import parse
from ltds.core.devices import to_layout
from ltds.core.errors import CheckpointError, ConfigError
from ltds.core.files import write_bytes
from ltds.core.registry import find
from ltds.core.tensors import packed, read_tensors
from ltds.nn.backbones import BACKBONES, BackboneSettings, build_backbone, has_random_weights, least_numbers
from ltds.nn.libraries import library_of
from ltds.nn.stages import split_backbone


class FrozenNetwork:
    """Images (N,3,H,W) to feature maps or features, in evaluation mode and without gradients.

    `stages`: the network is the first stages of its backbone; 0: all of it.
    """

    def __init__(self, settings: BackboneSettings, stages: int, *, pretrained: bool = True) -> None:
        """`pretrained=False` leaves the weights that the settings name aside: for one whose weights are loaded next."""
        backbone = build_backbone(settings, pretrained=pretrained)
        self.settings, self.stages = settings, stages
        self.module: nn.Module = split_backbone(backbone, stages)[0] if stages else backbone
        self.module.eval().requires_grad_(False)
        self.to(torch.device("cpu"))

    def to(self, device: torch.device) -> FrozenNetwork:
        self._device = device
        self.module.to(device)
        to_layout(self.module, device)
        return self

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.module(images.to(self._device))
        return outputs.float()

    @property
    def checksum(self) -> str:
        """SHA-256 of the layers' settings and of all weights, wherever these were read from."""
        # The JSON of a network from a folder says what it is; for others it is empty, and came after the first runs.
        unused = "name" if self.settings.architecture else "architecture"
        layers = self.settings.model_dump(
            mode="json", exclude={"weights", "frozen", "batchnorm", "adapter_width", unused}
        )
        digest = hashlib.sha256(json.dumps([layers, self.stages], sort_keys=True).encode())
        for name, tensor in sorted(self.module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` needs besides the weights."""
        return {
            "backbone": self.settings.model_dump(mode="json"),
            "stages": self.stages,
            "checksum": self.checksum,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, pretrained: bool) -> FrozenNetwork:
        """The network that `to_dict` described; of this package or a known library: a file cannot name code to run."""
        settings = parse(BackboneSettings, content["backbone"])
        if library_of(settings.name) is None:
            find("backbone", settings.name, BACKBONES)
        return cls(settings, int(content["stages"]), pretrained=pretrained)

    def save(self, file: Path) -> None:
        """Write the weights as safetensors."""
        write_bytes(file, save(packed(self.module.state_dict())))

    @classmethod
    def load(cls, content: Mapping[str, Any], file: Path) -> FrozenNetwork:
        """The network that `to_dict` described with the weights that `save` wrote."""
        settings, stages = parse(BackboneSettings, content["backbone"]), int(content["stages"])
        try:
            tensors = cast("dict[str, Tensor]", read_tensors(file))
            if sum(tensor.numel() for tensor in tensors.values()) < least_numbers(settings, stages=min(stages or 4, 4)):
                raise CheckpointError(_damaged(file, f"too few weights for a {settings.name} of this width"))
            network = cls.from_dict(content, pretrained=False)
            network.module.load_state_dict(tensors)
        except (OSError, SafetensorError, RuntimeError, TypeError) as error:
            raise CheckpointError(_damaged(file, str(error))) from error
        if network.checksum != content["checksum"]:
            raise CheckpointError(_damaged(file, "other weights"))
        return network


def require_weights(settings: BackboneSettings) -> None:
    """Refuse a network of this package without pretrained weights, where it is not going to learn."""
    if has_random_weights(settings):
        raise ConfigError(
            f"Expected backbone.weights for a backbone that stays as it is, but '{settings.name}' has random weights. "
            "Name a file of pretrained weights, or use backbone.name=efficientnet-lite0 and backbone.weights=imagenet.",
            settings=["backbone.weights"],
        )


def _damaged(file: Path, got: str) -> str:
    return (
        f"Expected '{file}' to hold the frozen weights that this run was trained with, but got: {got}. "
        "Restore it, or train the run again in another folder."
    )
