"""What a network is given for a row of the manifest: a transformed image, or a precomputed feature vector."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.rng import generator
from ltds.data.cache import ImageCache
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.data.transforms import EvalTransform, TrainTransform

Rows = NDArray[np.int64]


class NetworkInputs(Protocol):
    """Inputs by row id; `checksum` is that of the manifest they belong to."""

    @property
    def checksum(self) -> str: ...

    def training(self, batch: Rows, share: Rows, seed: int, step: int) -> Tensor:
        """The inputs at positions `share` of a step's `batch` of rows, augmented at the address (seed, step)."""
        ...

    def evaluation(self, rows: Rows) -> Tensor:
        """The inputs of these rows without augmentation."""
        ...


class ImageInputs:
    """Cached images (N,3,size,size), cropped and jittered in training, resized and normalised in evaluation."""

    def __init__(self, cache: ImageCache, train: TrainTransform, evaluate: EvalTransform) -> None:
        self.checksum = cache.checksum
        self.cache, self.train, self.evaluate = cache, train, evaluate

    def training(self, batch: Rows, share: Rows, seed: int, step: int) -> Tensor:
        """Random numbers are drawn for the whole batch, so that an image's crop does not depend on who computes it."""
        random = self.train.draw(len(batch), generator(seed, "augment", step))
        return self.train.apply_pixels(self.cache.pixels(batch[share]), random[torch.from_numpy(share)])

    def evaluation(self, rows: Rows) -> Tensor:
        return self.evaluate.apply_pixels(self.cache.pixels(rows))


class FeatureInputs:
    """Precomputed vectors (N,D), divided by `scale`; there is no augmentation."""

    def __init__(self, vectors: FeatureVectors, manifest: Manifest, scale: float) -> None:
        self.checksum = manifest.checksum
        self.dim, self.scale = vectors.dim, scale
        self._values = torch.from_numpy(vectors.values) / scale

    def training(self, batch: Rows, share: Rows, seed: int, step: int) -> Tensor:
        return self.evaluation(batch[share])

    def evaluation(self, rows: Rows) -> Tensor:
        return self._values[torch.from_numpy(rows)]


def training_scale(vectors: FeatureVectors, rows: Rows) -> float:
    """The standard deviation of all entries of the training vectors, 1 for constant ones; no test vector takes part."""
    return float(vectors.values[rows].astype(np.float64).std()) or 1.0
