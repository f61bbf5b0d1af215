"""Decoded images in memory-mapped files: built once per (manifest, size), with a bar, then opened in no time.

`<root>/.cache/<checksum[:16]>-<size>/` holds `pixels-00000.u8`, ... (the (h,w,3) bytes of each image, one after the
other, in the manifest's order, in at most FILES files of equally many images), `index.npy` (N,3: offset in its file,
h, w) and `source.txt` (what it was made from). Images keep their aspect, so that random and central crops see what they
would see in the file.
"""

from __future__ import annotations

import contextlib
import errno
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
from ltds.data.manifest import Manifest
from ltds.data.parts import Decoded, Part, decode_parts
from ltds.data.stylelist import require_styles

LAYOUT = 3  # raise it when the files or the decoding change: caches made before are then built again
INDEX, SOURCE = "index.npy", "source.txt"
FILES, FEWEST = 64, 32  # files of pixels, which stay open; images in each, unless there are fewer
WORTH_PROCESSES = 2**24  # bytes of image files: below, about half a second of decoding, processes do not pay
SHOWN = 10


class ImageCache:
    """The images of a manifest, shorter side at most `size`, by row id."""

    def __init__(self, checksum: str, size: int, index: NDArray[np.int64], pixels: list[Tensor]) -> None:
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
        source, weight = _source(manifest)
        found = _read(folder, source, len(manifest))
        if found is None:
            require_styles(manifest.root)
            try:
                processes = (workers or os.cpu_count() or 1) if weight >= WORTH_PROCESSES else 1
                _build(manifest, size, folder, source, processes, progress)
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
        """(3,h,w) uint8, a view into a memory-mapped file: read it, never write to it (clone it first)."""
        offset, height, width = self._index[row].tolist()
        pixels = self._pixels[row // _length(len(self))]
        return pixels[offset : offset + height * width * 3].view(height, width, 3).permute(2, 0, 1)


def _source(manifest: Manifest) -> tuple[str, int]:
    """What a cache is made from, in one hash: manifest, layout, each file's bytes and time of change. And all bytes.

    Reading each file's content instead would cost as much as building the cache.
    """
    digest = hashlib.sha256(f"{LAYOUT} {manifest.checksum}".encode())
    weight = 0
    for path in manifest.paths:
        try:
            status = os.stat(os.path.join(manifest.root, path))  # Path is three times slower
            weight += status.st_size
            digest.update(f" {status.st_size} {status.st_mtime_ns}".encode())
        except OSError:  # the build will decode it, fail, and name it
            digest.update(b" missing")
    return digest.hexdigest(), weight


def _length(rows: int) -> int:
    """How many of so many images stand in one file: enough files for many processes, few enough to keep them open."""
    return max(FEWEST, -(-rows // FILES))


def _files(rows: int) -> list[tuple[str, slice]]:
    """The files of pixels, and which of so many images stand in each."""
    length = _length(rows)
    firsts = range(0, rows, length)
    return [(f"pixels-{i:05d}.u8", slice(first, min(first + length, rows))) for i, first in enumerate(firsts)]


def _read(folder: Path, source: str, rows: int) -> tuple[NDArray[np.int64], list[Tensor]] | None:
    """Index and mapped pixels, or None where there is no whole, current cache."""
    files = _files(rows)
    try:
        if (folder / SOURCE).read_text(encoding="utf-8") != source:
            return None
        index = np.load(folder / INDEX)
        if index.shape != (rows, 3):
            return None
        # Read-only: a private writable map counts as memory, and one larger than the machine's would be refused.
        pixels = [np.memmap(folder / name, dtype=np.uint8, mode="r") for name, _ in files]
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # it may be whole all the same
            remedy = "Raise the limit (ulimit -n 4096), or close files."
            raise DataError(expected("the cache", "opened", f"'{error}'", remedy)) from error
        return None
    except (ValueError, EOFError):
        return None
    for (_, held), part in zip(files, pixels, strict=True):
        offset, height, width = index[held.stop - 1].tolist()
        if len(part) != offset + height * width * 3:
            return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return index, [torch.from_numpy(part) for part in pixels]


def _build(manifest: Manifest, size: int, folder: Path, source: str, processes: int, progress: Progress) -> None:
    """Make the folder under another name and give it its own when complete, so that nobody meets half a cache."""
    folder.parent.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".building-{folder.name}-"))
    try:
        new = work / "new"
        new.mkdir()
        index = _write_pixels(manifest, size, new, processes, progress)
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


def _write_pixels(manifest: Manifest, size: int, new: Path, processes: int, progress: Progress) -> NDArray[np.int64]:
    """(N,3) offset, h, w of each image, its bytes written; no more than an image of each process is in memory."""
    images = [os.path.join(manifest.root, path) for path in manifest.paths]
    parts = [Part(images[held], size, str(new / name)) for name, held in _files(len(images))]
    with progress.track("Decoding images", len(images)) as advance:
        results = decode_parts(parts, processes, advance)
    problems = [problem for result in results for problem in result.problems]
    if problems:
        raise DataError(_report(manifest, problems))
    return np.concatenate([_entries(result) for result in results])


def _entries(part: Decoded) -> NDArray[np.int64]:
    """(n,3) where the images of a part begin in its file, and their heights and widths."""
    shapes = np.array(part.shapes, dtype=np.int64)
    ends = np.cumsum(3 * shapes[:, 0] * shapes[:, 1])
    return np.column_stack([np.concatenate([[0], ends[:-1]]), shapes])


def _report(manifest: Manifest, problems: list[str]) -> str:
    lines = [f"{len(problems)} of {len(manifest)} images of '{manifest.name}' cannot be used:"]
    lines += [f"- {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"- ... and {len(problems) - SHOWN} more")
    return "\n".join(lines)
