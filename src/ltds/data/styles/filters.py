"""Filters that the classical styles are made of. All take (N,channels,h,w) and keep its shape, device and type."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

REFERENCE = 224  # styles are drawn for this shorter side, and scale with the image
SHARPNESS = 8.0  # of the sectors in `paint`


def scale(images: Tensor) -> float:
    """How many pixels a pixel of the reference size is, at least 0.4 (strokes thinner than that vanish)."""
    return max(min(images.shape[-2:]) / REFERENCE, 0.4)


def luminance(images: Tensor) -> Tensor:
    """(N,1,h,w) brightness as the eye weighs red, green and blue."""
    weights = images.new_tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def saturate(images: Tensor, by: float) -> Tensor:
    grey = luminance(images)
    return (grey + by * (images - grey)).clamp(0, 1)


def stretch(grey: Tensor) -> Tensor:
    """Brightness spread so that all but 2 % at each end fill the range from 0 to 1; an even image stays as it is."""
    flat = grey.flatten(1).sort(dim=1).values
    last = flat.shape[1] - 1
    dark, light = (flat[:, round(q * last)].view(-1, 1, 1, 1) for q in (0.02, 0.98))
    spread = ((grey - dark) / (light - dark).clamp(min=1e-3)).clamp(0, 1)
    return torch.where(light - dark > 0.05, spread, grey)


def blur(images: Tensor, sigma: float) -> Tensor:
    """Gaussian blur, edges repeated."""
    radius = max(1, math.ceil(2.5 * sigma))
    steps = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    weights = torch.exp(-0.5 * (steps / sigma) ** 2)
    weights = (weights / weights.sum()).view(1, 1, -1, 1)
    flat = images.flatten(0, 1).unsqueeze(1)
    flat = F.conv2d(F.pad(flat, (0, 0, radius, radius), mode="replicate"), weights)
    flat = F.conv2d(F.pad(flat, (radius, radius, 0, 0), mode="replicate"), weights.transpose(2, 3))
    return flat.view_as(images)


def box(images: Tensor, radius: int) -> Tensor:
    """Mean over a square window, edges repeated."""
    padded = F.pad(images, (radius,) * 4, mode="replicate")
    rows = F.avg_pool2d(padded, (2 * radius + 1, 1), stride=1)
    return F.avg_pool2d(rows, (1, 2 * radius + 1), stride=1)


def smooth(images: Tensor, radius: int, edge: float) -> Tensor:
    """Guided filter of each channel by itself: flat where differences stay below `edge`, sharp at larger ones."""
    mean = box(images, radius)
    variance = (box(images * images, radius) - mean * mean).clamp(min=0)
    gain = variance / (variance + edge * edge)
    return box(gain, radius) * images + box(mean - gain * mean, radius)


def ink_lines(grey: Tensor, sigma: float, least: float = 0.007, full: float = 0.028) -> Tensor:
    """Dark lines on 1, where the image dips: difference of Gaussians, from `least` (no line) to `full` (black)."""
    dip = blur(grey, 1.6 * sigma) - blur(grey, sigma)
    depth = ((dip - least) / (full - least)).clamp(0, 1)
    return 1 - depth * depth * (3 - 2 * depth)


def paint(images: Tensor, radius: int) -> Tensor:
    """Generalised Kuwahara filter (Papari 2007): each pixel takes the mean of the calmest of eight sectors around it.

    The sectors' means are weighted by variance^(-SHARPNESS/2), which leaves no blocks as a hard choice would.
    """
    kernels = _sectors(radius, images)
    flat = F.pad(images, (radius,) * 4, mode="replicate").flatten(0, 1).unsqueeze(1)
    sectors = (images.shape[0], images.shape[1], len(kernels), *images.shape[2:])
    mean = F.conv2d(flat, kernels).view(sectors)
    square = F.conv2d(flat * flat, kernels).view(sectors)
    variance = (square - mean * mean).clamp(min=0).sum(1, keepdim=True)
    weights = (1e-4 + variance).pow(-SHARPNESS / 2)
    weights = weights / weights.sum(2, keepdim=True)
    return (weights * mean).sum(2)


def _sectors(radius: int, images: Tensor) -> Tensor:
    """(8,1,2r+1,2r+1) Gaussian discs cut into eight, overlapping by half a sector."""
    steps = np.arange(-radius, radius + 1)
    y, x = np.meshgrid(steps, steps, indexing="ij")
    disc = np.exp(-0.5 * (x * x + y * y) / (0.5 * radius) ** 2) * (x * x + y * y <= (radius + 0.5) ** 2)
    kernels = []
    for sector in range(8):
        apart = (np.arctan2(y, x) - sector * np.pi / 4 + np.pi) % (2 * np.pi) - np.pi
        kernel = disc * np.where((x == 0) & (y == 0), 0.25, np.clip(1 - np.abs(apart) / (np.pi / 4), 0, 1))
        kernels.append(kernel / kernel.sum())
    return torch.from_numpy(np.stack(kernels)).to(images).unsqueeze(1)


def grain(images: Tensor, seed: int, sigma: float = 0.0) -> Tensor:
    """(1,1,h,w) noise of mean 0 and deviation 1, the same for every image of a size: the tooth of the paper."""
    noise = np.random.default_rng(seed).standard_normal(images.shape[-2:])
    field = torch.from_numpy(noise).to(images)[None, None]
    if sigma > 0:
        field = blur(field, sigma)
    return (field - field.mean()) / field.std(correction=0).clamp(min=1e-6)


def strokes(images: Tensor, angle: float, length: int, seed: int) -> Tensor:
    """(1,1,h,w) in [0,1], evenly distributed: noise drawn out along `angle` (degrees), like hatching by hand."""
    direction = math.radians(angle)
    steps = torch.linspace(-length / 2, length / 2, 2 * length + 1, device=images.device, dtype=images.dtype)
    half = length // 2 + 1
    kernel = images.new_zeros(2 * half + 1, 2 * half + 1)
    rows = (half + steps * math.sin(direction)).round().long()
    columns = (half + steps * math.cos(direction)).round().long()
    kernel[rows, columns] = 1
    field = F.conv2d(F.pad(grain(images, seed), (half,) * 4, mode="replicate"), (kernel / kernel.sum())[None, None])
    field = (field - field.mean()) / field.std(correction=0).clamp(min=1e-6)
    return 0.5 * (1 + torch.erf(field / math.sqrt(2)))
