"""Features of all images of a dataset by a pretrained network, to train on instead of the images."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ltds.core.config import parse
from ltds.core.errors import ConfigError, LtdsWarning, expected
from ltds.core.files import require_writable
from ltds.core.progress import SILENT, Progress
from ltds.data.cache import image_files_state
from ltds.data.datasets.opening import open_dataset
from ltds.data.features import FeatureVectors, write_features
from ltds.data.manifest import Manifest
from ltds.data.prefetch import READING_THREADS, prefetch
from ltds.data.stylelist import require_styles
from ltds.data.transforms import EvalTransform
from ltds.engine.device import choose_device
from ltds.engine.frozen import weights_beside
from ltds.engine.preprocessing import ImagePreprocessing
from ltds.nn.backbones import BackboneSettings
from ltds.nn.efficientnet import DEFAULT_VARIANT, VARIANTS
from ltds.nn.frozen import FrozenNetwork, require_weights

BATCH = 64
FILES_STATE_KEY = "source"  # in the provenance of features: the `image_files_state` they were computed in


def extract_features(
    data: str | Path | Manifest,
    *,
    backbone: str = DEFAULT_VARIANT,
    weights: str | Path = "",
    size: int = 224,
    out: str | Path | None = None,
    device: str = "auto",
    progress: Progress = SILENT,
) -> Path:
    """Compute the features of every image of a dataset and write them to a file to train on.

        file = ltds.extract_features("data/birds", backbone="efficientnet-lite0")
        ltds.train("data/birds", features=file, method="ltds", held_out="sketch", out="runs/sketch")

    The weights of the network are stored next to this file (.safetensors), so that a model trained on the features can
    predict from images.

    Args:
        data: The dataset, or its folder.
        backbone: The network: "efficientnet-lite0" to "2", a ResNet, "timm:NAME", "torchvision:NAME", "hf:FOLDER",
            or your own as "package.module:function".
        weights: A file of pretrained weights. By default the ImageNet weights of an efficientnet-lite; for "hf:FOLDER"
            those in the folder.
        size: Side of the images that the network sees, in pixels.
        out: The file, by default DATA/features/BACKBONE-SIZE.npz, or with weights of your own
            DATA/features/BACKBONE-SIZE-CHECKSUM.npz.
        device: "auto" (a GPU if there is one), "cpu", "cuda" or "mps".
        progress: Shows progress, for example `ltds.Bars()`. The default shows nothing.
    """
    manifest = open_dataset(data, progress)
    settings = backbone_settings(backbone, str(weights))
    network = FrozenNetwork(settings, 0)
    file = Path(out) if out is not None else manifest.root / "features" / _file_name(network, size)
    if file.suffix != ".npz":
        raise ConfigError(
            expected("the file for the features", "named *.npz", f"'{file}'", "Give the file this ending.")
        )
    require_writable(file.parent)  # before hours of work
    images = ImagePreprocessing(round(size * 8 / 7), EvalTransform(size))
    source = image_files_state(manifest)  # before an image is read: if one changes now, the features are outdated
    provenance = {"images": images.to_dict(), "network": network.to_dict(), FILES_STATE_KEY: source}
    paths = list(dict.fromkeys(manifest.paths))
    values = _compute(manifest, paths, images, network.to(choose_device(device)), progress)
    network.save(weights_beside(file))
    write_features(file, values, paths, provenance)
    return file


def backbone_settings(backbone: str, weights: str) -> BackboneSettings:
    """The settings of a pretrained network; an efficientnet-lite has ImageNet weights unless others are named."""
    default = "imagenet" if backbone in VARIANTS else ""
    settings = parse(BackboneSettings, {"name": backbone, "weights": weights or default})
    require_weights(settings)
    return settings


def _compute(
    manifest: Manifest, paths: list[str], images: ImagePreprocessing, network: FrozenNetwork, progress: Progress
) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
    """(N,D) in half precision, in the order of the paths; images are decoded in advance."""
    require_styles(manifest.root)

    def pixels(start: int) -> Tensor:
        return images([manifest.root / path for path in paths[start : start + BATCH]])

    parts = []
    with progress.track("Computing features", len(paths)) as advance:
        for batch in prefetch(pixels, range(0, len(paths), BATCH), threads=READING_THREADS, window=2):
            values = network(batch)
            _require_vectors(values)
            parts.append(values.half().cpu().numpy())
            advance(len(batch))
    return np.concatenate(parts)


def _require_vectors(values: Tensor) -> None:
    if values.ndim != 2:
        rule, remedy = "features (N,D)", "Pool and flatten its output."
        raise ConfigError(expected("the output of the backbone", rule, f"{tuple(values.shape)}", remedy))
    if not torch.isfinite(values.half()).all():
        got = "NaN or a number beyond the range of half precision"
        raise ConfigError(expected("the features", "finite", got, "Use other backbone.weights."))


def _file_name(network: FrozenNetwork, size: int) -> str:
    """Two networks have two files: plans and runs that use the features of one must not find those of the other."""
    settings = network.settings
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in settings.name)
    packaged = settings.name in VARIANTS and settings.weights == "imagenet"
    return f"{name}-{size}.npz" if packaged else f"{name}-{size}-{network.checksum[:8]}.npz"


def warn_of_changed_images(file: Path, manifest: Manifest) -> None:
    """Warn if the images are no longer those that the features were computed from, as far as their files tell.

    For a command, not for each of its runs: every image file is looked at.
    """
    then = FeatureVectors.read(file, manifest).provenance.get(FILES_STATE_KEY)
    if then is None or not (manifest.root / manifest.paths[0]).exists() or then == image_files_state(manifest):
        return  # not known, or features without images
    warnings.warn(
        f"The image files of '{manifest.name}' have changed since '{file}' was computed from them, or were copied "
        "without their times. If they show something else now, compute the features again.",
        LtdsWarning,
        stacklevel=2,
    )
