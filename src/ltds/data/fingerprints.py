"""The fingerprints of a dataset's training and validation images, computed once and stored beside its decoded images.

`<root>/.cache/fingerprints-<images>.npy` holds one number for each row of the manifest, 0 for test images. `images` is
a hash of the manifest and of the image files' sizes and times, as for the cache: changed files have another name.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_array
from ltds.core.files import DiskFullError, atomic
from ltds.core.progress import SILENT, Progress
from ltds.data.cache import image_files_state
from ltds.data.content import fingerprint
from ltds.data.manifest import Manifest

NAME = "fingerprints"
Fingerprints = NDArray[np.uint64]


def fingerprints_of(manifest: Manifest, rows: NDArray[np.int64], progress: Progress = SILENT) -> Fingerprints:
    """(N,) the fingerprints of these training and validation rows (N,). Raises OSError where a file is missing."""
    source = image_files_state(manifest)  # before an image is read: if one changes now, what is stored is outdated
    file = manifest.root / ".cache" / f"{NAME}-{source[:16]}.npy"
    stored = _read(file, len(manifest))
    if stored is not None:
        return stored[rows]
    learned = np.concatenate([manifest.rows("train"), manifest.rows("val")])
    try:
        numbers = _compute(manifest, learned, progress)
    except OSError:  # perhaps in a domain that nobody asks for
        return _compute(manifest, rows, progress)
    of_row = np.zeros(len(manifest), np.uint64)
    of_row[learned] = numbers
    _store(file, of_row)
    return of_row[rows]


def _compute(manifest: Manifest, rows: NDArray[np.int64], progress: Progress) -> Fingerprints:
    numbers = []
    with progress.track("Noting which images were seen", len(rows)) as advance:
        for row in rows.tolist():
            numbers.append(fingerprint(manifest.root / manifest.paths[row]))
            advance()
    return np.array(numbers, np.uint64)


def _read(file: Path, rows: int) -> Fingerprints | None:
    """The numbers in the file; None where there are none, or where it is damaged."""
    try:
        numbers = read_array(file)
    except (OSError, ValueError):
        return None
    return numbers if numbers.shape == (rows,) and numbers.dtype == np.uint64 else None


def _store(file: Path, numbers: Fingerprints) -> None:
    """Write the file and delete those of images that have changed since; nothing where it cannot be written."""
    with contextlib.suppress(OSError, DiskFullError):
        with atomic(file) as stream:
            np.save(stream, numbers)
        for old in file.parent.glob(f"{NAME}-*.npy"):
            if old != file:
                old.unlink(missing_ok=True)
