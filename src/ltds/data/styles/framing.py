"""Padding: generators need sides that are a multiple of 4, images have any size."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STEP = 4  # the resolution is halved twice
SMALLEST = 8  # two pixels at a quarter of the resolution, the minimum for reflection padding by one


class Framed:
    """A style: (N,3,h,w) RGB in [0,1] to the same, through a generator that needs sides of a multiple of 4.

    The right and bottom edges are repeated as padding, which is cut off afterwards.
    """

    def __init__(self, generator: nn.Module) -> None:
        self.generator = generator

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        padded = F.pad(images, (0, _missing(width), 0, _missing(height)), mode="replicate")
        made: Tensor = self.generator(padded)
        return made[..., :height, :width].clamp(0, 1)


def _missing(side: int) -> int:
    return max(SMALLEST, -(-side // STEP) * STEP) - side
