"""Images as tensors (3,h,w), for tests of code that takes and gives them as arrays (h,w,3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ltds.data.cache import ImageCache
from ltds.data.transforms import TrainTransform


def cached_image(cache: ImageCache, row: int) -> Tensor:
    """(3,h,w) uint8: the image of this row."""
    return torch.from_numpy(cache.pixels([row])[0].copy()).permute(2, 0, 1)


def transformed(transform: TrainTransform, images: Sequence[Tensor], random: Tensor) -> Tensor:
    """(N,3,size,size) the images (3,h,w) transformed by their rows of `random` (N, columns)."""
    return transform.apply_pixels([image.permute(1, 2, 0).numpy() for image in images], random)


def augmented(transform: TrainTransform, images: Sequence[Tensor], generator: torch.Generator) -> Tensor:
    """(N,3,size,size) the images (3,h,w) transformed by the next random numbers of the generator."""
    return transformed(transform, images, transform.draw(len(images), generator))
