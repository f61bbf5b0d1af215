"""The index of a model's training images: read from beside the model, or made from the dataset and kept there."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ltds.core.errors import CheckpointError, DataError, LtdsWarning
from ltds.core.files import DiskFullError
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import NEAREST_FILE
from ltds.data.build.source import broken_link
from ltds.data.decode import decoded
from ltds.data.features import FeatureVectors
from ltds.data.manifest import Manifest
from ltds.data.prefetch import READING_THREADS, prefetch
from ltds.engine.model import Model
from ltds.engine.preprocessing import FrozenPreprocessing, ImagePreprocessing, Preprocessing
from ltds.engine.training_index import TrainingIndex, make_index

SIDE = 96  # of a thumbnail
BATCH = 64
Prepared = tuple[list[int], list[bytes], Tensor | None]  # rows, their pictures, images or what the network takes


def open_index(model: Model, data: str | Path | Manifest | None = None, progress: Progress = SILENT) -> TrainingIndex:
    """The index beside the model; if there is none, it is made from the dataset, and kept for the next time.

    `data`: the dataset that the model was trained on, where it is not at the place it had then.
    """
    checksum = model_checksum(model)
    file = None if model.folder is None else model.folder / NEAREST_FILE
    if file is not None and file.is_file():
        index = TrainingIndex.load(file)
        if index.model_checksum == checksum:
            return index
    index = compute_index(model, _training_data(model, data), checksum, progress)
    if file is not None:
        _keep(index, file)
    return index


def can_index(model: Model) -> bool:
    """Whether the model has an index, or its dataset is still there to build one."""
    if model.folder is not None and (model.folder / NEAREST_FILE).is_file():
        return True
    place = model.stored.config.data.root
    return bool(place) and (Path(place) / "manifest.json").is_file()


def compute_index(model: Model, manifest: Manifest, checksum: str, progress: Progress = SILENT) -> TrainingIndex:
    """Features and thumbnails of all training images; what cannot be read is left out. `checksum`: the model's."""
    rows = np.concatenate([manifest.rows("train", source) for source in model.task.sources])
    kept: list[int] = []
    pictures: list[bytes] = []
    features: list[NDArray[np.float32]] = []
    done = 0
    with progress.track("Features of training images", len(rows)) as advance, torch.inference_mode():
        for good, small, inputs in _prepared(model, manifest, rows):
            if inputs is not None:
                outputs = model.method.predict(inputs.to(model.device)).features
                features.append(outputs.flatten(1).float().cpu().numpy())
                kept += good
                pictures += small
            advance(min(BATCH, len(rows) - done))
            done += BATCH
    if not kept:
        raise _none_can_be_read(manifest)
    names = [
        (manifest.paths[i], manifest.classes[manifest.labels[i]], manifest.domains[manifest.domain_ids[i]])
        for i in kept
    ]
    return make_index(np.concatenate(features), names, pictures, checksum)


def model_checksum(model: Model) -> str:
    """SHA-256 of the weights and of the preprocessing: equal for a run and its export."""
    digest = hashlib.sha256()
    preprocessing = model.record.preprocessing.to_dict()
    if "network" in preprocessing:  # its checksum stands for its weights, wherever these were read from
        preprocessing["network"] = preprocessing["network"]["checksum"]
    digest.update(json.dumps(preprocessing, sort_keys=True).encode())
    for name, tensor in sorted(model.method.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _training_data(model: Model, data: str | Path | Manifest | None) -> Manifest:
    if isinstance(data, Manifest):
        manifest = data
    else:
        place = str(data) if data is not None else model.stored.config.data.root
        if not place or not (Path(place) / "manifest.json").is_file():
            raise _missing(place, given=data is not None)
        manifest = Manifest.read(Path(place))
    if model.stored.trained_on(manifest) is False:
        raise DataError(
            f"Expected the dataset that the model was trained on, but '{manifest.root}' has other images, classes or "
            "splits. Restore it, or name the right one.",
            arguments=["data"],
        )
    return manifest


def _missing(place: str, *, given: bool) -> CheckpointError:
    why = f"its dataset is not at '{place}' any more" if place else "it was exported without them"
    if given:
        why = f"'{place}' has no manifest.json"
    return CheckpointError(
        f"Expected the features of the model's training images ({NEAREST_FILE}) next to it, or its dataset to compute "
        f"them from, but got neither: {why}. Name the folder of the built "
        "dataset, the one with manifest.json (a folder of images is not enough), or export the run again where "
        "the dataset is, with the argument 'nearest' of ltds.export.",
        arguments=["data"],
    )


def _none_can_be_read(manifest: Manifest) -> DataError:
    """The dataset is there, its images are not: those of a folder of images are elsewhere, and a link leads there."""
    there = f"the training images of '{manifest.name}' in '{manifest.root}'"
    if why := broken_link(manifest.root):
        return DataError(f"Expected {there}, but none can be read: {why}")
    return DataError(
        f"Expected {there}, but none can be read. Restore them, or name a copy of the same dataset: the folder with "
        "its manifest.json.",
        arguments=["data"],
    )


def _keep(index: TrainingIndex, file: Path) -> None:
    try:
        index.save(file)
    except (OSError, DiskFullError) as error:
        why = error.strerror if isinstance(error, OSError) else "the disk is full"
        warnings.warn(
            f"The features of the training images could not be kept in '{file}' ({why}); they will be computed again "
            "the next time.",
            LtdsWarning,
            stacklevel=2,
        )


def _prepared(model: Model, manifest: Manifest, rows: NDArray[np.int64]) -> Iterator[Prepared]:
    """Batches for the network: from the file of features where the model was trained on one, else from the images."""
    batches = [rows[start : start + BATCH].tolist() for start in range(0, len(rows), BATCH)]
    preprocessing, file = model.record.preprocessing, model.stored.config.data.features
    vectors = _vectors(preprocessing, Path(file), manifest) if file and Path(file).is_file() else None
    if vectors is not None:
        for batch, small in prefetch(partial(_pictures, manifest), batches, threads=READING_THREADS, window=2):
            values: Any = vectors[batch]  # an array is taken as vectors, a list as images
            yield batch, small, preprocessing(values)
    elif isinstance(preprocessing, ImagePreprocessing | FrozenPreprocessing):
        read = partial(_read_images, manifest, preprocessing.images)
        for good, small, images in prefetch(read, batches, threads=READING_THREADS, window=2):
            yield good, small, None if images is None else preprocessing.to_inputs(images)
    else:
        raise DataError(
            f"Expected the file of features that the model was trained on, but got nothing at '{file}'. Restore it."
        )


def _vectors(preprocessing: Preprocessing, file: Path, manifest: Manifest) -> NDArray[np.float32] | None:
    """The features in the file; None where another network than the model's has computed them since its training."""
    vectors = FeatureVectors.read(file, manifest)
    if isinstance(preprocessing, FrozenPreprocessing):
        return vectors.values if vectors.network.get("checksum") == preprocessing.network.checksum else None
    return vectors.values


def _pictures(manifest: Manifest, batch: list[int]) -> tuple[list[int], list[bytes]]:
    """The batch with a small JPEG of each image; b"" where there is no readable image."""
    pictures = []
    for row in batch:
        try:
            pictures.append(_thumbnail(decoded(manifest.root / manifest.paths[row], 2 * SIDE)))
        except DataError:
            pictures.append(b"")
    return batch, pictures


def _read_images(manifest: Manifest, images: ImagePreprocessing, batch: list[int]) -> Prepared:
    """The images of a batch that can be read, each decoded once; transformed, but not yet seen by any network."""
    good, pictures, pixels = [], [], []
    for row in batch:
        try:
            image = images.decode(manifest.root / manifest.paths[row])
        except DataError:
            continue
        good.append(row)
        pictures.append(_thumbnail(Image.fromarray(image.permute(1, 2, 0).numpy())))
        pixels.append(image)
    return good, pictures, images.transform(pixels) if good else None


def _thumbnail(image: Image.Image) -> bytes:
    image.thumbnail((SIDE, SIDE))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85)
    return stream.getvalue()
