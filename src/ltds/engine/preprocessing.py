"""From what a user has (image files, or feature vectors) to what the network takes, exactly as evaluation did it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import DataError, expected
from ltds.data.decode import ImageSource, decode_tensor
from ltds.data.transforms import EvalTransform
from ltds.nn.frozen import FrozenNetwork

# Images that a frozen network sees at once. Alone they are slower, and so are many: the outputs of its first layers are
# large, and where a process gives freed memory back, new pages for 64 of them take longer than the network.
PORTION = 16


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

    @property
    def images(self) -> ImagePreprocessing:
        return self

    def __call__(self, raw: Sequence[Any]) -> Tensor:
        return self.transform([self.decode(image) for image in raw])

    def decode(self, image: ImageSource) -> Tensor:
        """(3,h,w) pixels; DataError for an image that cannot be read."""
        return decode_tensor(image, self.decoded_side)

    def to_inputs(self, images: Tensor) -> Tensor:
        """What the model takes, of transformed images: these."""
        return images

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "image", "decoded_side": self.decoded_side, "transform": self.transform.to_dict()}


@dataclass(frozen=True)
class FeaturePreprocessing:
    """Feature vectors of length `input_dim`, divided by `scale`."""

    input_dim: int
    scale: float

    def __call__(self, raw: Sequence[Any]) -> Tensor:
        try:
            values = np.asarray(raw, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Expected feature vectors (N,{self.input_dim}), as this model was trained on precomputed features "
                "and does not hold the network that computed them, but got something else. Compute the features of "
                "your images as for training, then give these."
            ) from error
        if values.ndim != 2 or values.shape[1] != self.input_dim or not np.isfinite(values).all():
            rule = f"finite numbers (N,{self.input_dim}), as the model was trained on"
            raise DataError(expected("features", rule, f"an array {values.shape}", "Compute them as for training."))
        return torch.from_numpy(values) / self.scale

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "features", **asdict(self)}


@dataclass(frozen=True)
class FrozenPreprocessing:
    """Images through the frozen network whose outputs the model was trained on, rounded to half precision as there.

    `features`: where these outputs are feature vectors, how they are prepared; the model then takes vectors, too.
    """

    images: ImagePreprocessing
    network: FrozenNetwork
    features: FeaturePreprocessing | None = None

    @property
    def input_dim(self) -> int | None:
        return self.features.input_dim if self.features else None

    def __call__(self, raw: Sequence[Any]) -> Tensor:
        if self.features and isinstance(raw, np.ndarray) and not _lists_images(raw):
            _refuse_pixels(raw, self.features.input_dim)
            return self.features(raw)
        return self.to_inputs(self.images(raw))

    def to_inputs(self, images: Tensor) -> Tensor:
        """What the model takes, of transformed images: what the network makes of them."""
        outputs = torch.cat([self.network(part) for part in torch.split(images, PORTION)]).half().float()
        return outputs / self.features.scale if self.features else outputs

    def to_dict(self) -> dict[str, Any]:
        features = self.features.to_dict() if self.features else None
        return frozen_to_dict(self.images.to_dict(), self.network.to_dict(), features)


def _lists_images(array: NDArray[Any]) -> bool:
    """Whether it holds paths or other images, and no numbers."""
    return array.ndim == 1 and array.dtype.kind in "OSU"


def _refuse_pixels(array: NDArray[Any], dim: int) -> None:
    """Refuse integers where vectors are taken besides images: a grey image as wide as a vector would pass for many."""
    if array.dtype.kind != "f":
        rule = f"feature vectors (N,{dim}) of floating type"
        got = f"{array.dtype} {array.shape}, which may be the pixels of an image"
        remedy = "Give an image as a file or as PIL.Image.fromarray(array), vectors as array.astype(np.float32)."
        raise DataError(expected("an array of numbers", rule, got, remedy))


def frozen_to_dict(
    images: Mapping[str, Any], network: Mapping[str, Any], features: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The description of a FrozenPreprocessing from those of its parts."""
    return {"kind": "frozen", "images": dict(images), "network": dict(network), "features": features}


def preprocessing_from_dict(
    content: Mapping[str, Any], frozen_weights: Path, device: torch.device | None = None
) -> Preprocessing:
    """What `to_dict` described. `frozen_weights`: the file of weights of its frozen network, where it has one."""
    kind = content["kind"]
    if kind == "image":
        return ImagePreprocessing(_count(content, "decoded_side"), EvalTransform.from_dict(content["transform"]))
    if kind == "features":
        return FeaturePreprocessing(_count(content, "input_dim"), _scale(content["scale"]))
    if kind != "frozen":
        raise ValueError(f"preprocessing of kind '{kind}'")
    images = preprocessing_from_dict(content["images"], frozen_weights)
    features = preprocessing_from_dict(content["features"], frozen_weights) if content["features"] else None
    if not isinstance(images, ImagePreprocessing) or not isinstance(features, FeaturePreprocessing | None):
        raise ValueError("a frozen network between other things than images and features")
    network = FrozenNetwork.load(content["network"], frozen_weights)
    return FrozenPreprocessing(images, network.to(device or torch.device("cpu")), features)


def _count(content: Mapping[str, Any], name: str) -> int:
    value = content[name]
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} {value!r}, which is not a whole number of at least 1")
    return value


def _scale(value: Any) -> float:
    if not 0 < float(value) < math.inf:
        raise ValueError(f"scale {value!r}, which is not a number above 0")
    return float(value)
