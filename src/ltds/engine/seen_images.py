"""Which images a model has seen in training: a number for each, which a copy of the file has, too, wherever it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_array
from ltds.core.errors import CheckpointError, DataError
from ltds.core.files import atomic
from ltds.core.progress import SILENT, Progress
from ltds.core.task import Task
from ltds.data.content import fingerprint
from ltds.data.manifest import Manifest
from ltds.engine.model import Model

FILE = "seen.npy"  # in a run, and in a model directory


def fingerprints(manifest: Manifest, task: Task, progress: Progress = SILENT) -> NDArray[np.uint64] | None:
    """(N,) of the training and validation images, ascending; None where a file is missing, as with features alone."""
    rows = [row for split in ("train", "val") for source in task.sources for row in manifest.rows(split, source)]
    numbers = []
    try:
        with progress.track("Noting which images were seen", len(rows)) as advance:
            for row in rows:
                numbers.append(fingerprint(manifest.root / manifest.paths[row]))
                advance()
    except OSError:
        return None
    return np.unique(np.array(numbers, np.uint64))


def write_fingerprints(folder: Path, numbers: NDArray[np.uint64]) -> None:
    with atomic(folder / FILE) as stream:
        np.save(stream, numbers)


def read_fingerprints(folder: Path | None) -> NDArray[np.uint64] | None:
    """What `write_fingerprints` wrote; None where nothing was, as by earlier versions."""
    if folder is None or not (folder / FILE).is_file():
        return None
    try:
        numbers = read_array(folder / FILE)
        if numbers.ndim != 1 or numbers.dtype != np.uint64:
            raise ValueError(f"an array {numbers.shape} of {numbers.dtype}")
        return numbers
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"Expected '{folder / FILE}' to tell which images the model has seen in training, but got: {error}. "
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
    return None if model.stored.trained_on(manifest) is False else fingerprints(manifest, model.task)
