"""The frozen network between the images of a run and the part of it that learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ltds.core.errors import ConfigError
from ltds.core.files import link_or_copy
from ltds.core.progress import SILENT, Progress
from ltds.data.activations import ActivationInputs, ActivationSource
from ltds.data.cache import ImageCache
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.data.transforms import EvalTransform, TrainTransform
from ltds.engine.preprocessing import ImagePreprocessing
from ltds.engine.settings import DataSettings, SharedSettings
from ltds.nn.backbones import BackboneSettings
from ltds.nn.frozen import FrozenNetwork, require_weights


@dataclass(frozen=True)
class FrozenRecord:
    """What a run keeps of its frozen network: how images reach it, what it is, how to save it."""

    images: Mapping[str, Any]
    network: Mapping[str, Any]
    save: Callable[[Path], None]

    @property
    def checksum(self) -> str:
        return str(self.network["checksum"])


def check_frozen(settings: SharedSettings) -> None:
    """Refuse settings of frozen stages that contradict each other or have no effect."""
    frozen, variants = settings.backbone.frozen, settings.data.cached_variants
    if frozen and settings.data.features:
        raise ConfigError(
            f"Expected backbone.frozen=0 with precomputed features, but got {frozen}: there is no network for images "
            "in such a run. Leave it out."
        )
    if frozen:
        require_weights(settings.backbone)
    elif variants > 1:
        raise ConfigError(
            f"Expected data.cached_variants only with frozen stages, but got {variants} and backbone.frozen=0. "
            "Set backbone.frozen=3, for example, or leave it out."
        )


def activation_inputs(
    data: DataSettings,
    backbone: BackboneSettings,
    manifest: Manifest,
    device: torch.device,
    progress: Progress = SILENT,
) -> tuple[ActivationInputs, FrozenRecord]:
    """The outputs of the frozen stages for all images, computed now or before."""
    network = FrozenNetwork(backbone, backbone.frozen)
    evaluate = EvalTransform(size=data.size)
    train = TrainTransform(size=data.size, **data.augmentation.model_dump())
    images = ImagePreprocessing(data.decoded_side, evaluate).to_dict()
    record = FrozenRecord(images, network.to_dict(), network.save)
    cache = ImageCache.open(manifest, data.decoded_side, progress=progress)
    source = ActivationSource(network.to(device), record.checksum, evaluate, train)
    return ActivationInputs.open(manifest, cache, source, data.cached_variants, progress=progress), record


def weights_beside(features: Path) -> Path:
    """Where the weights are of the network that computed a file of features."""
    return features.with_suffix(".safetensors")


def extractor_of(vectors: FeatureVectors, file: Path) -> FrozenRecord | None:
    """The network that computed these vectors, where ltds did and its weights still lie beside the file."""
    images, weights = vectors.provenance.get("images"), weights_beside(file)
    if not isinstance(images, dict) or not vectors.network or not weights.is_file():
        return None
    return FrozenRecord(images, vectors.network, partial(link_or_copy, weights))
