"""From what a user has (image files, or feature vectors) to what the network takes, exactly as evaluation did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.data.decode import decode_tensor
from ltds.data.transforms import EvalTransform


class Preprocessing(Protocol):
    """Raw inputs to a batch of network inputs."""

    @property
    def input_dim(self) -> int | None: ...

    def __call__(self, raw: Sequence[Any]) -> Tensor: ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ImagePreprocessing:
    """Images (paths, file contents, Pillow images): decoded to a shorter side of `decoded_side`, then transformed."""

    decoded_side: int
    transform: EvalTransform

    @property
    def input_dim(self) -> None:
        return None

    def __call__(self, raw: Sequence[Any]) -> Tensor:
        return self.transform([decode_tensor(image, self.decoded_side) for image in raw])

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "image", "decoded_side": self.decoded_side, "transform": self.transform.to_dict()}


@dataclass(frozen=True)
class FeaturePreprocessing:
    """Feature vectors of length `input_dim`, divided by `scale`."""

    input_dim: int
    scale: float

    def __call__(self, raw: Sequence[Any]) -> Tensor:
        values = np.asarray(raw, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != self.input_dim or not np.isfinite(values).all():
            rule = f"finite numbers (N,{self.input_dim}), as the model was trained on"
            raise DataError(expected("features", rule, f"an array {values.shape}", "Compute them as for training."))
        return torch.from_numpy(values) / self.scale

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "features", **asdict(self)}


def preprocessing_from_dict(content: dict[str, Any]) -> Preprocessing:
    """What `to_dict` described."""
    if content["kind"] == "features":
        return FeaturePreprocessing(int(content["input_dim"]), float(content["scale"]))
    if content["kind"] != "image":
        raise ValueError(f"preprocessing of kind '{content['kind']}'")
    return ImagePreprocessing(int(content["decoded_side"]), EvalTransform.from_dict(content["transform"]))
