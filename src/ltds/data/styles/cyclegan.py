"""CycleGAN's generator (Zhu et al., ICCV 2017), nine residual blocks: photographs as paintings."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from ltds.data.styles.framing import Framed
from ltds.data.styles.weights import fill, read_weights

ORIGIN = "github.com/junyanz/pytorch-CycleGAN-and-pix2pix (style_vangogh, style_ukiyoe: latest_net_G.pth)"
RUNNING = ("running_mean", "running_var", "num_batches_tracked")


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_block = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, 3),
            nn.InstanceNorm2d(channels),
            nn.ReLU(),
            nn.ReflectionPad2d(1),
            nn.Conv2d(channels, channels, 3),
            nn.InstanceNorm2d(channels),
        )

    def forward(self, images: Tensor) -> Tensor:
        return images + self.conv_block(images)  # type: ignore[no-any-return]


class CycleGenerator(nn.Module):
    """(N,3,h,w) RGB in [0,1] to the same; h and w multiples of 4. Layers carry the numbers of the published files."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), nn.InstanceNorm2d(64), nn.ReLU()]
        for channels in (64, 128):
            down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
            layers += [down, nn.InstanceNorm2d(2 * channels), nn.ReLU()]
        layers += [ResidualBlock(256) for _ in range(9)]
        for channels in (256, 128):
            up = nn.ConvTranspose2d(channels, channels // 2, 3, stride=2, padding=1, output_padding=1)
            layers += [up, nn.InstanceNorm2d(channels // 2), nn.ReLU()]
        layers += [nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh()]
        self.model = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images * 2 - 1) * 0.5 + 0.5  # type: ignore[no-any-return]


def load(file: Path, device: torch.device) -> Framed:
    """The style in a published file such as style_vangogh's latest_net_G.pth.

    Files from before PyTorch 0.4 also have running statistics of the norms, which are not used.
    """
    weights = {name: value for name, value in read_weights(file).items() if not name.endswith(RUNNING)}
    network = CycleGenerator()
    fill(network, weights, file, ORIGIN)
    return Framed(network.to(device))
