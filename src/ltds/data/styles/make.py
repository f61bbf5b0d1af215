"""Stylised images: only the missing ones are made, in batches of equal size, by several processes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ltds.core.errors import DataError, expected
from ltds.core.files import atomic
from ltds.core.parallel import run_chunks
from ltds.core.progress import SILENT, Advance, Progress
from ltds.data.decode import decode, open_image
from ltds.data.styles import Style, load_style

CHUNK = 4  # batches that a worker takes at a time
ABANDONED = 3600  # seconds after which nobody can still be writing to an unfinished file
ENDS = {".jpg": b"\xff\xd9", ".jpeg": b"\xff\xd9", ".png": b"IEND\xaeB`\x82"}  # the last bytes of a complete file


class StyleJob(NamedTuple):
    """Make the file `target` by giving the image `source` this `style`."""

    target: Path
    source: Path
    style: str


@dataclass(frozen=True)
class StyleOptions:
    """How images are stylised: weight files by style, largest shorter side, device, images per batch."""

    weights: Mapping[str, Path]
    size: int = 256
    device: str = "cpu"
    batch: int = 8


def is_complete(file: Path) -> bool:
    """Whether the file is there to its last byte; a copy that was cut short is made again."""
    try:
        with file.open("rb") as stream:
            length = stream.seek(0, 2)
            end = ENDS.get(file.suffix.lower(), b"")
            stream.seek(max(0, length - len(end)))
            return length > 0 and stream.read() == end if end else length > 0
    except FileNotFoundError:
        return False


def make_images(
    jobs: Sequence[StyleJob], options: StyleOptions, *, workers: int = 1, progress: Progress = SILENT
) -> dict[str, str]:
    """Make the images that are missing; returns the problem of each source that could not be used, by its path."""
    missing = [job for job in jobs if not is_complete(job.target)]
    for folder in {job.target.parent for job in missing}:
        folder.mkdir(parents=True, exist_ok=True)
        _delete_abandoned(folder)
    _require_known_format(missing)
    load_styles({job.style for job in missing}, options)
    chunks = list(_chunks(missing, CHUNK * options.batch))
    problems: dict[str, str] = {}
    with progress.track("Stylising", len(jobs), len(jobs) - len(missing)) as advance:
        for _, chunk_problems in run_chunks(partial(_make, options), chunks, workers, advance, setup=_use_one_thread):
            problems.update(chunk_problems)
    return problems


def _use_one_thread() -> None:
    """Other workers use the other processors."""
    torch.set_num_threads(1)


def load_styles(styles: Iterable[str], options: StyleOptions) -> None:
    """Load every style that will be needed, so that a wrong file is found before the work starts."""
    for style in sorted(styles):
        _style(style, options.weights.get(style), options.device)


def _delete_abandoned(folder: Path) -> None:
    """Delete unfinished files that a crash left, but none that another process may be writing now."""
    for unfinished in folder.glob(".*.part"):
        with suppress(FileNotFoundError):
            if time.time() - unfinished.stat().st_mtime > ABANDONED:
                unfinished.unlink()


def _require_known_format(jobs: Iterable[StyleJob]) -> None:
    """Refuse a file to write whose ending names no image format that can be written."""
    known = Image.registered_extensions()
    bad = next((job.target for job in jobs if known.get(job.target.suffix.lower()) not in Image.SAVE), None)
    if bad is not None:
        remedy = "Convert the sources to JPEG or PNG."
        raise DataError(expected(f"'{bad}'", "of an image format that can be written", f"'{bad.suffix}'", remedy))


def _chunks(jobs: Iterable[StyleJob], most: int) -> Iterator[list[StyleJob]]:
    """Jobs of one style, sorted by size of image, so that most batches are full."""
    chunk: list[StyleJob] = []
    for job in sorted(jobs, key=lambda job: (job.style, _stored_size(job.source))):
        if chunk and (len(chunk) == most or chunk[0].style != job.style):
            yield chunk
            chunk = []
        chunk.append(job)
    if chunk:
        yield chunk


def _stored_size(file: Path) -> tuple[int, int]:
    """(w,h) as the file's header says; (0,0) where it cannot be read: decoding will say why."""
    try:
        with open_image(file) as image:
            return image.size
    except Exception:  # Pillow's plugins raise anything on a damaged header
        return 0, 0


def _make(options: StyleOptions, chunk: Sequence[StyleJob], advance: Advance) -> dict[str, str]:
    """Decode a chunk, redraw it in batches of equal size, write it; the problems by path of the source."""
    name = chunk[0].style
    style = _style(name, options.weights.get(name), options.device)
    problems: dict[str, str] = {}
    groups: dict[tuple[int, ...], list[tuple[Path, NDArray[np.uint8]]]] = {}
    for job in chunk:
        try:
            pixels = decode(job.source, options.size)
            groups.setdefault(pixels.shape, []).append((job.target, pixels))
        except DataError as error:
            problems[str(job.source)] = error.reason
            advance(1, name)
    for group in groups.values():
        for start in range(0, len(group), options.batch):
            batch = group[start : start + options.batch]
            _redraw(style, batch, torch.device(options.device))
            advance(len(batch), name)
    return problems


def _redraw(style: Style, batch: Sequence[tuple[Path, NDArray[np.uint8]]], device: torch.device) -> None:
    pixels = torch.from_numpy(np.stack([image for _, image in batch])).to(device)
    with torch.inference_mode():
        made = style(pixels.permute(0, 3, 1, 2).float() / 255)
    if not made.isfinite().all():
        got, remedy = "NaN or inf", "The weights do not fit the style: download them again."
        raise DataError(expected(f"the picture of '{batch[0][0]}'", "finite", got, remedy))
    redrawn = (made * 255).round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()
    for (target, _), image in zip(batch, redrawn, strict=True):
        kind = Image.registered_extensions()[target.suffix.lower()]
        options = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {"quality": 95} if kind == "WEBP" else {}
        with atomic(target) as file:
            Image.fromarray(image).save(file, format=kind, **options)


@cache
def _style(name: str, weights: Path | None, device: str) -> Style:
    """Each process loads a style once."""
    return load_style(name, weights, torch.device(device))
