"""Training and evaluation transforms: uint8 images of any size to a normalised float batch.

They do what torchvision's RandomResizedCrop (antialiased), RandomHorizontalFlip, ColorJitter, Normalize do; and Resize,
CenterCrop, Normalize. All random numbers are drawn first, for the whole batch, as one table of uniform numbers, so that
each rank can apply its rows of the table and the result does not depend on the number of ranks. The result for an image
depends only on its pixels and its row of the table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ConfigError, expected
from ltds.core.pixels import IMAGENET_MEAN, IMAGENET_STD

ImageBytes = NDArray[np.uint8]
GREY = (0.2989, 0.587, 0.114)
TRIES = 10
LONGEST = 8  # shorter sides: what lies beyond them is cut before a central crop, which sees only one of them
LARGEST_SIZE = 4096  # pixels: far above what networks see; a batch of larger images takes tens of gigabytes
LEAST_STD, LARGEST_MEAN = 1e-6, 1e6  # of pixels from 0 to 1: beyond these, float32 overflows or loses the image
RESIZE_RULE = "shorter side to size, antialiased bilinear, central crop"

# What F.interpolate(..., mode="bilinear", antialias=True) calls. Its own checks of arguments take a fifth of the time
# for an image of 32 pixels.
_OPERATION = "_upsample_bilinear2d_aa"
_ANTIALIASED: Any = getattr(torch._C._nn, _OPERATION, None) or getattr(torch.ops.aten, _OPERATION)

# Columns of the table of random numbers.
_AREA, _RATIO, _CORNER = slice(0, TRIES), slice(TRIES, 2 * TRIES), slice(2 * TRIES, 2 * TRIES + 2)
_FLIP, _STRENGTH, _ORDER = 2 * TRIES + 2, slice(2 * TRIES + 3, 2 * TRIES + 6), slice(2 * TRIES + 6, 2 * TRIES + 9)
_COLUMNS = 2 * TRIES + 9


@dataclass(frozen=True)
class TrainTransform:
    """(N,3,size,size) float32 from N uint8 images (h,w,3): random crop, flip, colour jitter."""

    size: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        _check_output(self.size, self.std)
        for name, (low, high) in (("scale", self.scale), ("ratio", self.ratio)):
            if not 0 < low <= high:
                raise ConfigError(expected(name, "0 < low <= high", (low, high), "Give the smaller number first."))
        if self.scale[1] > 1:
            raise ConfigError(expected("scale", "shares of the image, at most 1", self.scale, "Lower the second."))
        if not 0 <= self.flip <= 1:
            raise ConfigError(expected("flip", "a probability in 0..1", self.flip, "The usual value is 0.5."))
        for name in ("brightness", "contrast", "saturation"):
            if getattr(self, name) < 0:
                raise ConfigError(expected(name, "at least 0", getattr(self, name), "0 switches it off."))

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, columns) uniform random numbers, float64: all that is random in `count` images."""
        return torch.rand((count, _COLUMNS), generator=generator, dtype=torch.float64)

    def apply_pixels(self, images: Sequence[ImageBytes], random: Tensor) -> Tensor:
        """(N,3,size,size) the images (h,w,3) transformed by their rows of `random` (N, columns)."""
        table = random.numpy()
        sizes = np.array([image.shape[:2] for image in images], dtype=np.int64).reshape(-1, 2)
        boxes = crop_boxes(sizes, table[:, _AREA], table[:, _RATIO], table[:, _CORNER], self.scale, self.ratio)
        flipped = table[:, _FLIP] < self.flip
        factors = self._factors(random)
        orders = table[:, _ORDER].argsort(axis=1)
        out = torch.empty((len(images), 3, self.size, self.size))  # not an inference tensor: a backward pass needs it
        with torch.inference_mode():
            for order in itertools.permutations(range(3)):  # images with the same order of jitter together
                for rows in _portions(np.flatnonzero((orders == order).all(axis=1)), self.size):
                    pixels = self._crops([images[r] for r in rows.tolist()], boxes[rows], flipped[rows])
                    places = torch.from_numpy(rows)
                    done = _normalised(jitter(pixels.float(), factors[places], order), self.mean, self.std)
                    out.index_copy_(0, places, done)
        return out

    def _crops(self, images: list[ImageBytes], boxes: NDArray[np.int64], flipped: NDArray[np.bool_]) -> Tensor:
        """(n,3,size,size) bytes. All are cut before the first is resized: taking turns takes a fifth longer."""
        boxed = zip(images, boxes.tolist(), strict=True)
        cut = [_channels_first(image[None, top : top + h, left : left + w]) for image, (top, left, h, w) in boxed]
        pixels = torch.cat([_resized(part, self.size, self.size) for part in cut]).contiguous()
        values = pixels.numpy()
        values[flipped] = values[flipped][..., ::-1]
        return pixels

    def _factors(self, random: Tensor) -> Tensor:
        """(N,3) float32 factors of brightness, contrast, saturation."""
        strength = torch.tensor((self.brightness, self.contrast, self.saturation), dtype=torch.float64)
        low, high = (1 - strength).clamp_min(0), 1 + strength
        return (low + random[:, _STRENGTH] * (high - low)).float()


@dataclass(frozen=True)
class EvalTransform:
    """(N,3,size,size) float32 from N uint8 images (3,h,w): shorter side to `size`, central crop."""

    size: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        _check_output(self.size, self.std)

    def __call__(self, images: Sequence[Tensor]) -> Tensor:
        return self.apply_pixels([image.permute(1, 2, 0).numpy() for image in images])

    def apply_pixels(self, images: Sequence[ImageBytes]) -> Tensor:
        """The same, of images (h,w,3)."""
        out = torch.empty((len(images), 3, self.size, self.size))
        for part in _portions(np.arange(len(images)), self.size):
            alike: dict[tuple[int, ...], list[int]] = {}
            for r in part.tolist():
                alike.setdefault(images[r].shape, []).append(r)
            for rows in alike.values():
                pixels = self._centres(np.stack([images[r] for r in rows])).contiguous().float()
                out.index_copy_(0, torch.tensor(rows), _normalised(pixels, self.mean, self.std))
        return out

    def to_dict(self) -> dict[str, Any]:
        """The constants as plain values, for JSON."""
        return {"size": self.size, "resize": RESIZE_RULE, "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_dict(cls, constants: Mapping[str, Any]) -> EvalTransform:
        """The transform that `to_dict` described; raises ValueError for one that this class cannot do."""
        if constants["resize"] != RESIZE_RULE:
            raise ValueError(f"the only known resize rule is '{RESIZE_RULE}', but got '{constants['resize']}'")
        mean, std = (tuple(float(v) for v in constants[name]) for name in ("mean", "std"))
        if len(mean) != 3 or len(std) != 3:
            raise ValueError(f"mean and std of a transform have 3 numbers, but got {len(mean)} and {len(std)}")
        size = constants["size"]
        if not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"the size {size!r}, which is not a number of pixels from 1 to {LARGEST_SIZE}")
        if not all(LEAST_STD <= value <= LARGEST_MEAN for value in std):
            raise ValueError(f"the std {list(std)}, which is not from {LEAST_STD:g} to {LARGEST_MEAN:g}")
        if not all(abs(value) <= LARGEST_MEAN for value in mean):
            raise ValueError(f"the mean {list(mean)}, which is not from {-LARGEST_MEAN:g} to {LARGEST_MEAN:g}")
        return cls(size, (mean[0], mean[1], mean[2]), (std[0], std[1], std[2]))

    def _centres(self, images: ImageBytes) -> Tensor:
        """(n,3,size,size) bytes from images (n,h,w,3) of one size."""
        images = _without_ends(images)
        height, width = images.shape[1:3]
        short = min(height, width)
        height, width = int(self.size * height / short), int(self.size * width / short)
        top, left = round((height - self.size) / 2), round((width - self.size) / 2)
        return _resized(_channels_first(images), height, width)[:, :, top : top + self.size, left : left + self.size]


def crop_boxes(
    sizes: NDArray[np.int64],
    area: NDArray[np.float64],
    shape: NDArray[np.float64],
    corner: NDArray[np.float64],
    scale: tuple[float, float],
    ratio: tuple[float, float],
) -> NDArray[np.int64]:
    """(N,4) top, left, height, width of each crop; from sizes (N,2) and uniform random numbers (N,10), (N,10), (N,2).

    The first of ten tries that fits inside the image, its area uniform in `scale`, its ratio w/h log-uniform in
    `ratio`; where none fits, the largest central crop whose ratio is allowed.
    """
    height, width = sizes[:, :1], sizes[:, 1:]
    target = (height * width) * (scale[0] + area * (scale[1] - scale[0]))
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = np.exp(low + shape * (high - low))
    h, w = np.rint(np.sqrt(target / aspect)), np.rint(np.sqrt(target * aspect))
    fits = (h > 0) & (h <= height) & (w > 0) & (w <= width)
    first = fits.argmax(axis=1, keepdims=True)
    h, w = np.take_along_axis(h, first, 1), np.take_along_axis(w, first, 1)
    top_left = np.floor(corner * np.concatenate([height - h + 1, width - w + 1], axis=1))
    drawn = np.concatenate([top_left, h, w], axis=1)
    return np.where(fits.any(axis=1, keepdims=True), drawn, _central(height, width, ratio)).astype(np.int64)


def _central(height: NDArray[np.int64], width: NDArray[np.int64], ratio: tuple[float, float]) -> NDArray[np.int64]:
    aspect = width / height
    h = np.where(aspect < ratio[0], np.rint(width / ratio[0]), height).astype(np.int64)
    w = np.where(aspect > ratio[1], np.rint(height * ratio[1]), width).astype(np.int64)
    return np.concatenate([(height - h) // 2, (width - w) // 2, h, w], axis=1)


def jitter(pixels: Tensor, factors: Tensor, order: Sequence[int]) -> Tensor:
    """`pixels` (N,3,H,W), floats in 0..255, changed in place by `factors` (N,3) in the given order.

    Each is x <- clamp(f x + (1-f) r) with r = 0 (0: brightness), the mean of the grey image (1: contrast), or the
    grey image (2: saturation).
    """
    for operation in order:
        f = factors[:, operation, None, None, None]
        if operation == 0:
            pixels.mul_(f)
        elif operation == 1:
            # Two means: a single sum may be split over threads, and its rounding would depend on their number.
            mean = _grey(pixels.mean(3, keepdim=True).mean(2, keepdim=True))
            pixels.mul_(f).add_(mean.mul_(1 - f))
        else:
            grey = _grey(pixels)
            pixels.mul_(f).add_(grey.mul_(1 - f))
        pixels.clamp_(0, 255)
    return pixels


def _grey(pixels: Tensor) -> Tensor:
    """(N,1,H,W) from (N,3,H,W): 0.2989 R + 0.587 G + 0.114 B."""
    red, green, blue = pixels[:, :1], pixels[:, 1:2], pixels[:, 2:]
    return (red * GREY[0]).add_(green, alpha=GREY[1]).add_(blue, alpha=GREY[2])


def _without_ends(images: ImageBytes) -> ImageBytes:
    """(n,h,w,3) the middle of long images; others as they are.

    Resized as a whole, an image of 65,000 x 1 pixels takes 10 GB. An even number is cut, so that the centre stays.
    """
    short = min(images.shape[1:3])
    top, left = (max(0, side - LONGEST * short) // 2 for side in images.shape[1:3])
    return images[:, top : images.shape[1] - top, left : images.shape[2] - left]


def _channels_first(images: ImageBytes) -> Tensor:
    """(n,3,h,w) from images (n,h,w,3); in memory, channels stay last: torch resizes this layout fastest."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)


def _resized(images: Tensor, height: int, width: int) -> Tensor:
    """(n,3,height,width) bytes, antialiased bilinear."""
    if images.shape[2:] == (height, width):
        return images
    resized: Tensor = _ANTIALIASED(images, (height, width), False, None, None)
    return resized


def _normalised(pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(pixels / 255 - mean) / std, in place."""
    scale, shift = _scale_and_shift(tuple(mean), tuple(std))
    return pixels.mul_(scale).sub_(shift)


@lru_cache(maxsize=16)
def _scale_and_shift(mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    scale = torch.tensor([1 / (255 * s) for s in std])[:, None, None]
    return scale, torch.tensor([m / s for m, s in zip(mean, std, strict=True)])[:, None, None]


def _portions(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """The rows in groups whose floats (1 MB) stay in the processor's cache from crop to normalisation."""
    step = max(1, 2**18 // (3 * size * size))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _check_output(size: int, std: tuple[float, float, float]) -> None:
    if size < 1:
        raise ConfigError(expected("size", "at least 1 pixel", size, "Set data.size to 64, for example."))
    if size > LARGEST_SIZE:
        remedy = "Set data.size to 224, for example."
        raise ConfigError(expected("size", f"at most {LARGEST_SIZE} pixels", size, remedy))
    if min(std) <= 0:
        raise ConfigError(expected("std", "positive", std, "Leave it out to use that of ImageNet."))
