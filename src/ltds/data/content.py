"""A fingerprint of what is in a dataset's image files: other images under the same names are another dataset.

It has no times and no absolute paths in it, so that a copy of a dataset has the fingerprint of the original.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import address
from ltds.data.decode import REMEDY, decode
from ltds.data.manifest import Manifest

SAMPLE = 256  # images that are read, at fixed positions of the manifest
MOST_BYTES = 2**20  # read of each
BLOCK = 2**14  # bytes at the beginning, in the middle and at the end of a file


def sampled_content(manifest: Manifest) -> str | None:
    """A hash of the sizes of all image files and of the beginnings of 256 of them; None where a file is missing.

    Of a dataset that ltds draws, it is one of the pixels of the 256 images: another version of the PNG library writes
    other files for the same pixels.
    """
    rows = sorted({address(0, "content", i) % len(manifest) for i in range(SAMPLE)})
    files = [os.path.join(manifest.root, path) for path in manifest.paths]
    digest = hashlib.sha256(b"sampled 1")
    try:
        if "renderer" in manifest.provenance:
            _add(digest, (_pixels(files[row]) for row in rows))
        else:
            _add(digest, (str(os.stat(file).st_size).encode() for file in files))
            _add(digest, (_beginning(files[row]) for row in rows))
    except (OSError, ValueError):  # images that are not there, as with features alone, or that cannot be read
        return None
    return digest.hexdigest()


def full_content(manifest: Manifest, progress: Progress = SILENT) -> str:
    """A hash of every byte of every image file."""
    digest = hashlib.sha256(b"full 1")
    with progress.track("Reading images", len(manifest)) as advance:
        for path in manifest.paths:
            try:
                _add(digest, [sha256(manifest.root / path).encode()])
            except OSError as error:
                raise DataError(expected(f"image '{path}'", "a file that can be read", f"'{error}'", REMEDY)) from error
            advance()
    return digest.hexdigest()


def fingerprint(file: str | Path) -> int:
    """64 bits of a hash of a file's size, beginning, middle and end: equal for a copy. Raises OSError."""
    with open(file, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        digest = hashlib.sha256(str(size).encode())
        whole = stream.read() if size <= 2 * BLOCK else None  # small files are read once
        for start in (0, size // 2, max(0, size - BLOCK)):
            if whole is None:
                stream.seek(start)
            _add(digest, [stream.read(BLOCK) if whole is None else whole[start : start + BLOCK]])
    return int.from_bytes(digest.digest()[:8], "little")


def _add(digest: hashlib._Hash, parts: Iterable[bytes]) -> None:
    """Each part with its length before it, so that no two lists of parts look the same."""
    for part in parts:
        digest.update(f" {len(part)} ".encode())
        digest.update(part)


def _beginning(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(MOST_BYTES)


def _pixels(file: str) -> bytes:
    pixels = decode(Path(file), None)
    return str(pixels.shape).encode() + pixels.tobytes()
