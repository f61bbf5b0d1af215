"""Decoded images in files of raw pixels: built once for each manifest and size, then opened at once.

`<root>/.cache/<checksum[:16]>-<size>/` holds `pixels-00000.u8`, ... (the (h,w,3) bytes of each image, one after the
other, in the manifest's order, in at most FILES files with equally many images), `index.npy` (N,3: offset in its file,
h, w) and `source.txt` (a hash of what it was made from). Images keep their aspect ratio, so that random and central
crops see what they would see in the original file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_array
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.locks import locked, temporary_folder
from ltds.core.processor import cores
from ltds.core.progress import SILENT, Progress
from ltds.data.build.source import broken_link
from ltds.data.manifest import Manifest
from ltds.data.manifest_checks import bullet_list
from ltds.data.parallel_decode import DecodedImages, DecodeJob, decode_in_parallel
from ltds.data.read_at import REMEDY, OpenFile
from ltds.data.stylelist import require_styles

LAYOUT = 3  # raise it when the files or the decoding change: caches made before are then built again
TIFF = (".tif", ".tiff")
TIFF_DECODING = b" 3"  # likewise for datasets with these files: since 3, those stored sideways are not stripes
INDEX, SOURCE = "index.npy", "source.txt"
MOST_FILES, FEWEST_IMAGES = 64, 32  # files of pixels, which stay open; images in each, unless there are fewer
WORTH_PROCESSES = 2**24  # bytes of image files: fewer take half a second to decode, too little for more processes
BYTES = np.dtype(np.uint8)
KEPT = 2**28  # bytes of images that stay in memory once they were read: small datasets whole, of large ones a part
IndexAndPixels = tuple[NDArray[np.int64], list[OpenFile]]


class ImageCache:
    """The images of a manifest, shorter side at most `size`, by row id."""

    def __init__(self, checksum: str, size: int, index: NDArray[np.int64], pixels: list[OpenFile]) -> None:
        self.checksum = checksum
        self.size = size
        self._index = index
        self._pixels = pixels
        self._kept: dict[int, NDArray[np.uint8]] = {}
        self._room = KEPT

    @classmethod
    def open(
        cls, manifest: Manifest, size: int, *, workers: int | None = None, progress: Progress = SILENT
    ) -> ImageCache:
        """The cache of this manifest and size; built first where there is none, or where it is damaged or outdated.

        Outdated: the manifest, or the byte size or modification time of any image file, changed. Damaged: a file of the
        cache is missing or has the wrong length (the pixels themselves have no checksum).
        """
        if size < 1:
            raise ConfigError(expected("the image size", "at least 1 pixel", size, "Set data.size to 64, for example."))
        folder = manifest.root / ".cache" / f"{manifest.checksum[:16]}-{size}"
        source, total_bytes = _state_and_size(manifest)
        index_and_pixels = _read(folder, source, len(manifest))
        if index_and_pixels is None:
            if why := broken_link(manifest.root):
                raise DataError(f"Expected the images of '{manifest.name}' in '{manifest.root}', but {why}")
            require_styles(manifest.root)
            try:
                processes = (workers or cores()) if total_bytes >= WORTH_PROCESSES else 1
                index_and_pixels = _build(manifest, size, folder, source, processes, progress)
            except OSError as error:
                rule = "a folder that can be written to, with room for the decoded images"
                remedy = "Free some space or change the permissions; or copy the dataset to another disk."
                raise DataError(expected(f"'{folder.parent}'", rule, f"'{error}'", remedy)) from error
        return cls(manifest.checksum, size, *index_and_pixels)

    def __len__(self) -> int:
        return len(self._index)

    def pixels(self, rows: Sequence[int] | NDArray[np.int64]) -> list[NDArray[np.uint8]]:
        """The images of these rows, each (h,w,3), not to be written to, read from the files where they are not kept.

        DataError if a file was shortened since the cache was opened.
        """
        kept = self._kept
        return [kept[row] if row in kept else self._read_image(row) for row in np.asarray(rows, np.int64).tolist()]

    def _read_image(self, row: int) -> NDArray[np.uint8]:
        offset, height, width = self._index[row].tolist()
        image = self._pixels[row // _images_per_file(len(self))].read(offset, (height, width, 3), BYTES)
        if image.nbytes <= self._room:  # threads that read the same image at the same time keep one and count two
            self._room -= image.nbytes
            self._kept[row] = image
        return image


def image_files_state(manifest: Manifest) -> str:
    """A hash that changes with the manifest, and with the byte size or modification time of any image file."""
    return _state_and_size(manifest)[0]


def _state_and_size(manifest: Manifest) -> tuple[str, int]:
    """A hash of what a cache is made from (manifest, layout, byte size and modification time of each file), and the
    size of all files together.

    Reading the contents of the files instead would take as long as building the cache.
    """
    digest = hashlib.sha256(f"{LAYOUT} {manifest.checksum}".encode())
    total_bytes = 0
    for path in manifest.paths:
        try:
            status = os.stat(os.path.join(manifest.root, path))  # Path is three times slower
            total_bytes += status.st_size
            digest.update(f" {status.st_size} {status.st_mtime_ns}".encode())
        except OSError:  # the build will try to decode it, fail, and name it
            digest.update(b" missing")
        if path.lower().endswith(TIFF):
            digest.update(TIFF_DECODING)
    return digest.hexdigest(), total_bytes


def _images_per_file(rows: int) -> int:
    """How many of `rows` images share a file: enough files for many processes, few enough to keep them all open."""
    return max(FEWEST_IMAGES, -(-rows // MOST_FILES))


def _files(rows: int) -> list[tuple[str, slice]]:
    """The names of the files of pixels, and which of `rows` images are in each."""
    length = _images_per_file(rows)
    firsts = range(0, rows, length)
    return [(f"pixels-{i:05d}.u8", slice(first, min(first + length, rows))) for i, first in enumerate(firsts)]


def _read(folder: Path, source: str, rows: int) -> IndexAndPixels | None:
    """Index and files of pixels, or None where there is no complete and current cache."""
    files = _files(rows)
    try:
        if (folder / SOURCE).read_text(encoding="utf-8") != source:
            return None
        index = read_array(folder / INDEX)
        if index.shape != (rows, 3) or index.dtype.kind != "i" or index.min(initial=0) < 0:
            return None
        pixels = [OpenFile(folder / name) for name, _ in files]
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # the cache itself may be complete
            remedy = "Raise the limit (ulimit -n 4096), or close some files."
            raise DataError(expected("the cache", "opened", f"'{error}'", remedy)) from error
        return None
    except ValueError:
        return None
    for (_, images), file in zip(files, pixels, strict=True):
        offset, height, width = index[images.stop - 1].tolist()
        if file.size != offset + height * width * 3:
            return None
    return index, pixels


def _build(
    manifest: Manifest, size: int, folder: Path, source: str, processes: int, progress: Progress
) -> IndexAndPixels:
    """Make the folder under a temporary name and rename it when complete, so that nobody reads half a cache.

    Processes that have opened the files of an old cache keep them. Whoever finishes after another builder takes that
    one's cache, and does so under the lock under which folders are exchanged: without it, the folder that one process
    has just put there could be moved away by the next before the first has opened its files.
    """
    with temporary_folder(folder.parent, ".building-") as work:
        new = work / "new"
        new.mkdir()
        index = _write_pixels(manifest, size, new, processes, progress)
        np.save(new / INDEX, index)
        (new / SOURCE).write_text(source, encoding="utf-8")
        with locked(folder.parent, wait=True):
            if (finished_by_another := _read(folder, source, len(manifest))) is not None:
                return finished_by_another
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder, work / "old")
            os.rename(new, folder)
            built = _read(folder, source, len(manifest))
    if built is None:
        raise DataError(expected(f"'{folder}'", "readable, because it was just made", "missing or damaged", REMEDY))
    return built


def _write_pixels(manifest: Manifest, size: int, new: Path, processes: int, progress: Progress) -> NDArray[np.int64]:
    """(N,3) offset, h, w of each image, after writing its bytes; each process holds one image in memory at a time."""
    images = [os.path.join(manifest.root, path) for path in manifest.paths]
    jobs = [DecodeJob(images[rows], size, str(new / name)) for name, rows in _files(len(images))]
    with progress.track("Decoding images", len(images)) as advance:
        results = decode_in_parallel(jobs, processes, advance)
    problems = [problem for result in results for problem in result.problems]
    if problems:
        title = f"{len(problems)} of {len(manifest)} images of '{manifest.name}' cannot be used"
        raise DataError(bullet_list(title, problems))
    return np.concatenate([_index_entries(result) for result in results])


def _index_entries(decoded: DecodedImages) -> NDArray[np.int64]:
    """(n,3) where the images begin in their file, and their heights and widths."""
    shapes = np.array(decoded.shapes, dtype=np.int64)
    ends = np.cumsum(3 * shapes[:, 0] * shapes[:, 1])
    return np.column_stack([np.concatenate([[0], ends[:-1]]), shapes])
