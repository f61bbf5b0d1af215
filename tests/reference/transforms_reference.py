"""Slow twins of the transforms, one image and one pixel at a time, in float64, after torchvision's definitions."""

from __future__ import annotations

import math

import numpy as np

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def crop_box(height, width, area_draws, ratio_draws, place_draws, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
    """(top, left, height, width) of RandomResizedCrop.get_params, its uniform numbers given."""
    for u, v in zip(area_draws, ratio_draws, strict=True):
        target = height * width * (scale[0] + u * (scale[1] - scale[0]))
        aspect = math.exp(math.log(ratio[0]) + v * (math.log(ratio[1]) - math.log(ratio[0])))
        w = round(math.sqrt(target * aspect))
        h = round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(place_draws[0] * (height - h + 1)), int(place_draws[1] * (width - w + 1)), h, w
    if width / height < ratio[0]:
        w, h = width, round(width / ratio[0])
    elif width / height > ratio[1]:
        h, w = height, round(height * ratio[1])
    else:
        h, w = height, width
    return (height - h) // 2, (width - w) // 2, h, w


def resize(image, height, width):
    """(height,width,3) floats: separable triangle filter, as wide as the reduction (antialias), from (h,w,3)."""
    image = np.asarray(image, dtype=np.float64)
    for axis, size in ((0, height), (1, width)):
        lines = [
            sum(weight * np.take(image, j, axis=axis) for j, weight in taps(image.shape[axis], size, i))
            for i in range(size)
        ]
        image = np.stack(lines, axis=axis)
    return image


def taps(before, after, i):
    """(index, weight) of the input pixels that make output pixel i along one side."""
    step = before / after
    reach = max(step, 1.0)
    centre = (i + 0.5) * step
    found = []
    for j in range(before):
        distance = abs(j + 0.5 - centre) / reach
        if distance < 1:
            found.append((j, 1 - distance))
    total = sum(weight for _, weight in found)
    return [(j, weight / total) for j, weight in found]


def jitter(image, factors, order):
    """(h,w,3) in 0..255: adjust_brightness, adjust_contrast, adjust_saturation in the given order."""
    image = [[list(map(float, pixel)) for pixel in line] for line in image]
    for operation in order:
        f = factors[operation]
        greys = [[0.2989 * r + 0.587 * g + 0.114 * b for r, g, b in line] for line in image]
        mean = sum(map(sum, greys)) / (len(greys) * len(greys[0]))
        for y, line in enumerate(image):
            for x, pixel in enumerate(line):
                other = (0.0, mean, greys[y][x])[operation]
                line[x] = [min(255.0, max(0.0, f * value + (1 - f) * other)) for value in pixel]
    return np.array(image)


def normalise(image):
    """(3,h,w) from (h,w,3) in 0..255."""
    return ((image / 255 - MEAN) / STD).transpose(2, 0, 1)


def train(image, size, draws, flip=0.5, strengths=(0.4, 0.4, 0.4)):
    """(3,size,size) of one image (h,w,3), its uniform draws in a dict: area, ratio, place, flip, strength, order."""
    top, left, h, w = crop_box(*image.shape[:2], draws["area"], draws["ratio"], draws["place"])
    out = np.rint(resize(image[top : top + h, left : left + w], size, size))
    if draws["flip"] < flip:
        out = out[:, ::-1]
    factors = [max(0, 1 - s) + u * (1 + s - max(0, 1 - s)) for s, u in zip(strengths, draws["strength"], strict=True)]
    order = sorted(range(3), key=lambda k: draws["order"][k])
    return normalise(jitter(out, factors, order))


def evaluate(image, size):
    """(3,size,size): Resize(size) of the shorter side, CenterCrop(size), Normalize."""
    h, w = image.shape[:2]
    h, w = (int(size * h / w), size) if w <= h else (size, int(size * w / h))
    out = np.rint(resize(image, h, w))
    top, left = round((h - size) / 2), round((w - size) / 2)
    return normalise(out[top : top + size, left : left + size])
