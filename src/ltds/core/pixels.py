"""How pixels are normalised everywhere: RGB in 0..1 less ImageNet's mean, over its standard deviation."""

from __future__ import annotations

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
