"""Classical styles: deterministic filters that need no weights. Each takes (N,3,h,w) RGB in [0,1] to the same."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ltds.data.styles.filters import (
    blur,
    grain,
    ink_lines,
    luminance,
    paint,
    saturate,
    scale,
    smooth,
    stretch,
    strokes,
)


def cartoon(images: Tensor) -> Tensor:
    """Flat, bright colours in bands, with black outlines."""
    unit = scale(images)
    flat = images
    for _ in range(3):
        flat = smooth(flat, max(1, round(3 * unit)), 0.055)
    grey = luminance(flat)
    bands = 6
    level = (grey * bands).floor() + 0.5
    soft = (level + 0.5 * torch.tanh(6 * (grey * bands - level))) / bands  # steps with a narrow slope: no jagged rims
    colour = saturate((0.08 + 0.95 * (flat + soft - grey)).clamp(0, 1), 1.8)
    return colour * ink_lines(luminance(smooth(images, max(1, round(unit)), 0.03)), 1.2 * unit)


def pencil(images: Tensor) -> Tensor:
    """Graphite on paper: outlines, and hatching in three directions that grows denser where it is dark."""
    unit = scale(images)
    grey = stretch(luminance(smooth(images, max(1, round(2 * unit)), 0.05)))
    outline = (grey / blur(grey, 4 * unit).clamp(min=0.05)).clamp(0, 1) ** 2.5
    dark = 1 - grey
    page = torch.ones_like(grey)
    for angle, start, seed in ((-50.0, 0.15, 1), (-20.0, 0.45, 2), (40.0, 0.7, 3)):
        reach = ((dark - start) / (1 - start)).clamp(0, 1) * 0.9
        field = strokes(images, angle, max(4, round(16 * unit)), seed)
        page = page * (1 - 0.45 * torch.sigmoid((reach - field) * 12) * (reach > 0))
    drawn = page * (0.25 + 0.75 * outline) + 0.025 * grain(images, 4)
    tint = images.new_tensor([0.985, 0.98, 0.96]).view(1, 3, 1, 1)
    return (0.12 + 0.88 * drawn.clamp(0, 1)) * tint


def oil(images: Tensor) -> Tensor:
    """Thick paint: calm patches with crisp rims, and light that catches the ridges of the brush."""
    unit = scale(images)
    step = max(1, round(unit))
    painted = saturate(paint(paint(images, max(2, round(6 * unit))), max(2, round(4 * unit))), 1.6)
    bristle = strokes(images, -35.0, max(4, round(14 * unit)), 5) - 0.5
    height = blur(1.5 * luminance(painted) + 0.1 * bristle, 0.7 * unit)
    light = height - height.roll((step, step), (-2, -1))
    light[..., :step, :] = 0  # rolled over from the other side
    light[..., :step] = 0
    return (painted + 1.2 * light.clamp(-0.2, 0.2)).clamp(0, 1)


INKS = (  # paper, then inks from light to dark; the last one also prints lines and dots
    *((0.96, 0.91, 0.80), (0.97, 0.79, 0.25), (0.94, 0.69, 0.56), (0.55, 0.75, 0.72), (0.93, 0.50, 0.18)),
    *((0.60, 0.57, 0.55), (0.45, 0.60, 0.25), (0.80, 0.20, 0.17), (0.13, 0.40, 0.75), (0.48, 0.27, 0.15)),
    *((0.17, 0.33, 0.25), (0.08, 0.12, 0.25)),
)


def poster(images: Tensor) -> Tensor:
    """A print in a dozen flat inks on cream paper, with outlines and a screen of dots in the shadows."""
    unit = scale(images)
    flat = smooth(smooth(images, max(1, round(3 * unit)), 0.08), max(1, round(3 * unit)), 0.08)
    grey = luminance(flat)
    tone = stretch(grey)
    flat = saturate((flat + 0.4 * (tone - grey)).clamp(0, 1), 1.5)
    inks = images.new_tensor(INKS)
    apart = (flat.unsqueeze(1) - inks.view(1, -1, 3, 1, 1)).square()
    printed = inks[apart.sum(2).argmin(1)].permute(0, 3, 1, 2)
    shadow = ((0.4 - tone) / 0.4).clamp(0, 1) * 0.7
    covered = torch.sigmoid((shadow - _screen(images, 5 * unit)) * 14) * (shadow > 0.02)
    covered = torch.maximum(covered, 1 - ink_lines(luminance(images), 1.2 * unit, 0.012, 0.035))
    return printed * (1 - covered) + inks[-1].view(1, 3, 1, 1) * covered


def _screen(images: Tensor, period: float) -> Tensor:
    """(1,1,h,w) in [0,1]: the threshold at which each pixel of a 45 degree dot screen takes ink."""
    height, width = images.shape[-2:]
    y = torch.arange(height, device=images.device, dtype=images.dtype).view(-1, 1)
    x = torch.arange(width, device=images.device, dtype=images.dtype).view(1, -1)
    turn = math.pi * math.sqrt(2) / period
    wave = torch.cos((x + y) * turn / math.sqrt(2)) * torch.cos((x - y) * turn / math.sqrt(2))
    return (0.5 - 0.5 * wave)[None, None]


def watercolour(images: Tensor) -> Tensor:
    """Thin washes that pool at their rims, on rough white paper that shows through."""
    unit = scale(images)
    wash = paint(images, max(2, round(5 * unit)))
    grey = luminance(wash)
    wash = saturate((wash + stretch(grey) - grey).clamp(0, 1), 1.5)
    wash = 1 - 0.75 * (1 - wash)
    rim = (blur(grey, 1.5 * unit) - blur(grey, 3 * unit)).abs()
    pool = 0.15 * grain(images, 6, 8 * unit) + 0.1 * grain(images, 7, 0.7 * unit)
    pigment = (0.8 + pool + 14 * rim).clamp(0.3, 3)
    return wash.clamp(min=0.05) ** pigment  # absorbance times the amount of pigment


def woodcut(images: Tensor) -> Tensor:
    """Black ink on tan paper: cut lines that swell in the shadows and bend with the form."""
    unit = scale(images)
    grey = stretch(luminance(smooth(images, max(1, round(3 * unit)), 0.1)))
    height, width = images.shape[-2:]
    y = torch.arange(height, device=images.device, dtype=images.dtype).view(-1, 1)
    x = torch.arange(width, device=images.device, dtype=images.dtype).view(1, -1)
    bend = 10 * unit * blur(grey, 5 * unit) + 0.8 * unit * grain(images, 8, 6 * unit)
    wave = 0.5 + 0.5 * torch.cos((y + 0.35 * x + bend) * (2 * math.pi / (5 * unit)))
    cut = torch.sigmoid((1.15 * grey - 0.05 - wave) * 10)
    outline = ink_lines(grey, 1.2 * unit, 0.008, 0.03)
    paper = images.new_tensor([0.90, 0.80, 0.62]).view(1, 3, 1, 1)
    ink = images.new_tensor([0.10, 0.07, 0.06]).view(1, 3, 1, 1)
    return ink + (paper - ink) * (cut * outline)
