"""Which images a model was trained on, as content fingerprints, so that copies are recognised."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_array
from ltds.core.errors import CheckpointError, ConfigError, DataError, LtdsWarning
from ltds.core.files import atomic
from ltds.core.progress import SILENT, Progress
from ltds.core.runs import SEEN_FILE
from ltds.core.task import Task
from ltds.data.content import fingerprint
from ltds.data.fingerprints import fingerprints_of
from ltds.data.manifest import Manifest
from ltds.engine.model import Model


def seen_fingerprints(manifest: Manifest, task: Task, progress: Progress = SILENT) -> NDArray[np.uint64] | None:
    """(N,) of the training and validation images, ascending; None where a file is missing, as with features alone."""
    rows = np.concatenate([manifest.rows(split, source) for split in ("train", "val") for source in task.sources])
    try:
        return np.unique(fingerprints_of(manifest, rows, progress))
    except OSError:
        return None


def write_fingerprints(folder: Path, numbers: NDArray[np.uint64]) -> None:
    with atomic(folder / SEEN_FILE) as stream:
        np.save(stream, numbers)


def read_fingerprints(folder: Path | None) -> NDArray[np.uint64] | None:
    """What `write_fingerprints` wrote; None where nothing was, as by earlier versions."""
    if folder is None or not (folder / SEEN_FILE).is_file():
        return None
    try:
        numbers = read_array(folder / SEEN_FILE)
        if numbers.ndim != 1 or numbers.dtype != np.uint64:
            raise ValueError(f"an array {numbers.shape} of {numbers.dtype}")
        return numbers
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"Expected '{folder / SEEN_FILE}' to tell which images the model has seen in training, but got: {error}. "
            "Delete it; it is computed again if the dataset can be found."
        ) from error


def seen_by(model: Model) -> NDArray[np.uint64] | None:
    """The fingerprints beside the model, or those of its dataset if that is where it was; None without both."""
    stored = read_fingerprints(model.folder)
    root = model.stored.config.data.root
    if stored is not None or not root:
        return stored
    try:
        manifest = Manifest.read(Path(root))
    except (DataError, OSError):
        return None
    return None if model.stored.trained_on(manifest) is False else seen_fingerprints(manifest, model.task)


def leave_out_seen(model: Model, manifest: Manifest, rows: Sequence[int]) -> list[int]:
    """The rows of another dataset whose images the model has not seen; warn where nobody can tell.

    Raises if the model has seen half of them or more: probably its own training folder.
    """
    seen = seen_by(model)
    if seen is None:
        warnings.warn(
            f"Whether images of '{manifest.name}' were training images could not be checked: the model does not tell "
            "which images it has seen. If some were, the numbers are too good.",
            LtdsWarning,
            stacklevel=2,
        )
        return list(rows)
    files = [manifest.root / manifest.paths[row] for row in rows]
    repeated = np.isin([_fingerprint(file) for file in files], seen)
    if 2 * repeated.sum() >= len(rows):
        root = model.stored.config.data.root
        there = bool(root) and (Path(root) / "manifest.json").is_file()
        of, first = f" of the dataset '{root}'" if there else "", files[int(repeated.argmax())]
        raise ConfigError(
            f"Expected images that the model has not seen in training, but it has seen {repeated.sum()} of the "
            f"{len(files)} images of '{manifest.name}', such as '{first}': they are training or validation "
            f"images{of}, or copies of them. Evaluate the test images of the dataset that the model was trained on, or "
            "other images.",
            arguments=[f"data={root}", "split=test"] if there else ["data", "split=test"],
        )
    return [row for row, known in zip(rows, repeated, strict=True) if not known]


def _fingerprint(file: Path) -> np.uint64:
    """0 for a file that cannot be read: it is named and skipped later."""
    try:
        return np.uint64(fingerprint(file))
    except OSError:
        return np.uint64(0)
