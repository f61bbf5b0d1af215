"""CartoonGAN's generator (Chen et al., CVPR 2018): photographs as frames of Hayao's or Shinkai's films."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltds.data.styles.framing import Framed
from ltds.data.styles.weights import fill, read_weights

ORIGIN = "github.com/Yijunmaverick/CartoonGAN-Test-Pytorch-Torch (Hayao_net_G_float.pth, Shinkai_net_G_float.pth)"
BLOCKS = tuple(f"{number:02d}" for number in range(4, 12))


class InstanceNorm(nn.Module):
    """Each channel of each image to mean 0 and (biased) variance 1, then times `scale` plus `shift`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, images: Tensor) -> Tensor:
        return F.instance_norm(images, weight=self.scale, bias=self.shift, eps=1e-9)


class CartoonGenerator(nn.ModuleDict):
    """(N,3,h,w) RGB in [0,1] to the same; h and w multiples of 4. Layers carry the names of the published files."""

    def __init__(self) -> None:
        super().__init__()
        self["conv01_1"] = nn.Conv2d(3, 64, 7)
        self["in01_1"] = InstanceNorm(64)
        for number, channels in (("02", 64), ("03", 128)):
            self[f"conv{number}_1"] = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
            self[f"conv{number}_2"] = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
            self[f"in{number}_1"] = InstanceNorm(2 * channels)
        for number in BLOCKS:
            for layer in ("1", "2"):
                self[f"conv{number}_{layer}"] = nn.Conv2d(256, 256, 3)
                self[f"in{number}_{layer}"] = InstanceNorm(256)
        for number, norm, channels in (("01", "12", 128), ("02", "13", 64)):
            up = nn.ConvTranspose2d(2 * channels, channels, 3, stride=2, padding=1, output_padding=1)
            self[f"deconv{number}_1"] = up
            self[f"deconv{number}_2"] = nn.Conv2d(channels, channels, 3, padding=1)
            self[f"in{norm}_1"] = InstanceNorm(channels)
        self["deconv03_1"] = nn.Conv2d(64, 3, 7)

    def forward(self, images: Tensor) -> Tensor:
        x = images.flip(1) * 2 - 1  # the published network sees BGR in [-1,1]
        x = F.relu(self["in01_1"](self["conv01_1"](_reflect(x, 3))))
        for number in ("02", "03"):
            x = self[f"conv{number}_2"](self[f"conv{number}_1"](x))
            x = F.relu(self[f"in{number}_1"](x))
        for number in BLOCKS:
            inner = F.relu(self[f"in{number}_1"](self[f"conv{number}_1"](_reflect(x, 1))))
            x = x + self[f"in{number}_2"](self[f"conv{number}_2"](_reflect(inner, 1)))
        for number, norm in (("01", "12"), ("02", "13")):
            x = self[f"deconv{number}_2"](self[f"deconv{number}_1"](x))
            x = F.relu(self[f"in{norm}_1"](x))
        x = torch.tanh(self["deconv03_1"](_reflect(x, 3)))
        return x.flip(1) * 0.5 + 0.5


def _reflect(images: Tensor, by: int) -> Tensor:
    return F.pad(images, (by, by, by, by), mode="reflect")


def load(file: Path, device: torch.device) -> Framed:
    """The style in a published file such as Hayao_net_G_float.pth."""
    network = CartoonGenerator()
    fill(network, read_weights(file), file, ORIGIN)
    return Framed(network.to(device))
