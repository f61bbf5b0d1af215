"""Decoded images in one memory-mapped file: built once per (manifest, size), with a bar, then opened in no time.

`<root>/.cache/<checksum[:16]>-<size>/` holds `pixels.u8` (the (h,w,3) bytes of each image, one after the other, in
the manifest's order), `index.npy` (N,3: offset, h, w) and `source.txt` (what it was made from). Images keep their
aspect, so that random and central crops see what they would see in the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.data.ahead import ahead
from ltds.data.decode import decode
from ltds.data.manifest import Manifest
from ltds.data.stylelist import require_styles

LAYOUT = 1  # raise it when the files or the decoding change: caches made before are then built again
PIXELS, INDEX, SOURCE = "pixels.u8", "index.npy", "source.txt"
SHOWN = 10


class ImageCache:
    """The images of a manifest, shorter side at most `size`, by row id."""

    def __init__(self, checksum: str, size: int, index: NDArray[np.int64], pixels: Tensor) -> None:
        self.checksum = checksum
        self.size = size
        self._index = index
        self._pixels = pixels

    @classmethod
    def open(
        cls, manifest: Manifest, size: int, *, workers: int | None = None, progress: Progress = SILENT
    ) -> ImageCache:
        """The cache of this manifest and size; built first where there is none, or one that is damaged or stale.

        Stale: the manifest, or the byte size or modification time of any image file, changed. Damaged: a file of the
        cache is missing or has the wrong length (the pixels themselves are not checksummed).
        """
        if size < 1:
            raise ConfigError(expected("the image size", "at least 1 pixel", size, "Use --set data.size=64."))
        folder = manifest.root / ".cache" / f"{manifest.checksum[:16]}-{size}"
        source = _source(manifest)
        found = _read(folder, source, len(manifest))
        if found is None:
            require_styles(manifest.root)
            try:
                _build(manifest, size, folder, source, workers or os.cpu_count() or 1, progress)
            except OSError as error:
                rule = "a folder that can be written to, with room for the decoded images"
                remedy = "Make room or give yourself the right to write; or copy the dataset to where you have both."
                raise DataError(expected(f"'{folder.parent}'", rule, f"'{error}'", remedy)) from error
            found = _read(folder, source, len(manifest))
            assert found is not None, f"the cache just built in '{folder}' cannot be read"
        return cls(manifest.checksum, size, *found)

    def __len__(self) -> int:
        return len(self._index)

    def image(self, row: int) -> Tensor:
        """(3,h,w) uint8, a view into the memory-mapped file: read it, never write to it (clone it first)."""
        offset, height, width = self._index[row].tolist()
        return self._pixels[offset : offset + height * width * 3].view(height, width, 3).permute(2, 0, 1)


def _source(manifest: Manifest) -> str:
    """What a cache is made from, in one hash: manifest, layout, and each file's byte size and time of change.

    Reading each file's content instead would cost as much as building the cache.
    """
    digest = hashlib.sha256(f"{LAYOUT} {manifest.checksum}".encode())
    for path in manifest.paths:
        try:
            status = os.stat(os.path.join(manifest.root, path))  # Path is three times slower
            digest.update(f" {status.st_size} {status.st_mtime_ns}".encode())
        except OSError:  # the build will decode it, fail, and name it
            digest.update(b" missing")
    return digest.hexdigest()


def _read(folder: Path, source: str, rows: int) -> tuple[NDArray[np.int64], Tensor] | None:
    """Index and mapped pixels, or None where there is no whole, current cache."""
    try:
        if (folder / SOURCE).read_text(encoding="utf-8") != source:
            return None
        index = np.load(folder / INDEX)
        if index.shape != (rows, 3) or (folder / PIXELS).stat().st_size != _end(index[-1]):
            return None
        # Read-only: a private writable map counts as memory, and one larger than the machine's would be refused.
        pixels = np.memmap(folder / PIXELS, dtype=np.uint8, mode="r")
    except (OSError, ValueError, EOFError):
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return index, torch.from_numpy(pixels)


def _end(entry: NDArray[np.int64]) -> int:
    offset, height, width = entry.tolist()
    return int(offset + height * width * 3)


def _build(manifest: Manifest, size: int, folder: Path, source: str, workers: int, progress: Progress) -> None:
    """Make the folder under another name and give it its own when complete, so that nobody meets half a cache."""
    folder.parent.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".building-{folder.name}-"))
    try:
        new = work / "new"
        new.mkdir()
        index = _write_pixels(manifest, size, new / PIXELS, workers, progress)
        np.save(new / INDEX, index)
        (new / SOURCE).write_text(source, encoding="utf-8")
        _put(new, folder, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put(new: Path, folder: Path, work: Path) -> None:
    """Rename `new` to `folder`, moving what is there out of the way. Who has mapped the old files keeps them.

    Another process may put its own in between (with the same bytes in it): then again, each time moving one away.
    """
    for turn in range(100):
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, work / f"old-{turn}")
        try:
            os.rename(new, folder)
        except OSError:
            if not folder.exists():
                raise
        else:
            return
    raise OSError(f"'{folder}' is replaced by other processes again and again")


def _write_pixels(manifest: Manifest, size: int, file: Path, workers: int, progress: Progress) -> NDArray[np.int64]:
    """(N,3) offset, h, w of each image, its bytes written; only a few images per worker are in memory at a time."""

    def attempt(path: str) -> NDArray[np.uint8] | DataError:
        try:
            return decode(manifest.root / path, size)
        except DataError as error:
            return error

    index = np.zeros((len(manifest), 3), dtype=np.int64)
    problems: list[str] = []
    images = ahead(attempt, manifest.paths, threads=workers, window=4 * workers)
    with (
        contextlib.closing(images),
        file.open("wb") as stream,
        progress.track("Decoding images", len(manifest)) as advance,
    ):
        for row, image in enumerate(images):
            if isinstance(image, DataError):
                problems.append(str(image))
            elif not problems:
                index[row] = (stream.tell(), *image.shape[:2])
                stream.write(image.data)
            advance()
        stream.flush()
        os.fsync(stream.fileno())
    if problems:
        raise DataError(_report(manifest, problems))
    return index


def _report(manifest: Manifest, problems: list[str]) -> str:
    lines = [f"{len(problems)} of {len(manifest)} images of '{manifest.name}' cannot be used:"]
    lines += [f"- {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"- ... and {len(problems) - SHOWN} more")
    return "\n".join(lines)
