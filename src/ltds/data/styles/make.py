"""Making stylised images: only those not there yet, batched by equal size, in several processes."""

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
from ltds.core.progress import SILENT, Progress
from ltds.data.decode import decode
from ltds.data.styles import Style, load_style
from ltds.data.styles.processes import run

CHUNK = 4  # batches that a process takes at a time
ABANDONED = 3600  # seconds after which a file half written is nobody's
ENDS = {".jpg": b"\xff\xd9", ".jpeg": b"\xff\xd9", ".png": b"IEND\xaeB`\x82"}  # the last bytes of a whole file


class Order(NamedTuple):
    """Make the file `target` by giving the image `source` this `style`."""

    target: Path
    source: Path
    style: str


@dataclass(frozen=True)
class Means:
    """What images are made with: weights by style, shorter side of the pictures at most, device and batch size."""

    weights: Mapping[str, Path]
    size: int = 256
    device: str = "cpu"
    batch: int = 8


def is_whole(file: Path) -> bool:
    """Whether the file is there to its last byte; a copy that was cut short is made again."""
    try:
        with file.open("rb") as stream:
            length = stream.seek(0, 2)
            end = ENDS.get(file.suffix.lower(), b"")
            stream.seek(max(0, length - len(end)))
            return length > 0 and stream.read() == end if end else length > 0
    except FileNotFoundError:
        return False


def make_images(orders: Sequence[Order], means: Means, *, jobs: int = 1, progress: Progress = SILENT) -> dict[str, str]:
    """Make what is not there yet; returns what is wrong with each source that could not be used, by its path.

    With `jobs` above 1 processes are spawned, so a script must call this under `if __name__ == "__main__":`.
    """
    missing = [order for order in orders if not is_whole(order.target)]
    for folder in {order.target.parent for order in missing}:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
    _require_writable(missing)
    load_styles({order.style for order in missing}, means)
    chunks = list(_chunks(missing, CHUNK * means.batch))
    problems: dict[str, str] = {}
    with progress.track("Stylising", len(orders), len(orders) - len(missing)) as advance:
        for style, count, found in run(partial(_make, means), chunks, min(jobs, len(chunks))):
            problems.update(found)
            advance(count, style)
    return problems


def load_styles(styles: Iterable[str], means: Means) -> None:
    """Load what will be needed, to meet a wrong file before the work starts and not in its midst."""
    for style in sorted(styles):
        _style(style, means.weights.get(style), means.device)


def _sweep(folder: Path) -> None:
    """Remove what a crash left half written, but nothing that another process may be writing now."""
    for unfinished in folder.glob(".*.part"):
        with suppress(FileNotFoundError):
            if time.time() - unfinished.stat().st_mtime > ABANDONED:
                unfinished.unlink()


def _require_writable(orders: Iterable[Order]) -> None:
    known = Image.registered_extensions()
    bad = next((order.target for order in orders if known.get(order.target.suffix.lower()) not in Image.SAVE), None)
    if bad is not None:
        remedy = "Convert the sources to JPEG or PNG."
        raise DataError(expected(f"'{bad}'", "named as an image that can be written", f"'{bad.suffix}'", remedy))


def _chunks(orders: Iterable[Order], most: int) -> Iterator[list[Order]]:
    """Orders of one style, those of one size side by side, so that most batches come out full."""
    chunk: list[Order] = []
    for order in sorted(orders, key=lambda order: (order.style, _stored_size(order.source))):
        if chunk and (len(chunk) == most or chunk[0].style != order.style):
            yield chunk
            chunk = []
        chunk.append(order)
    if chunk:
        yield chunk


def _stored_size(file: Path) -> tuple[int, int]:
    """(w,h) by the file's header alone; (0,0) where it cannot be read, for decoding will say why."""
    try:
        with Image.open(file) as image:
            return image.size
    except Exception:  # Pillow's plugins raise anything on a damaged header
        return 0, 0


Done = tuple[str, int, dict[str, str]]


def _make(means: Means, chunk: Sequence[Order]) -> Done:
    """Decode a chunk, redraw it in batches of equal size, write it; the style, how many, and what was wrong."""
    name = chunk[0].style
    style = _style(name, means.weights.get(name), means.device)
    problems: dict[str, str] = {}
    groups: dict[tuple[int, ...], list[tuple[Path, NDArray[np.uint8]]]] = {}
    for order in chunk:
        try:
            pixels = decode(order.source, means.size)
            groups.setdefault(pixels.shape, []).append((order.target, pixels))
        except DataError as error:
            problems[str(order.source)] = str(error).split(", but got ", 1)[-1].split(". ")[0]
    for group in groups.values():
        for start in range(0, len(group), means.batch):
            _redraw(style, group[start : start + means.batch], torch.device(means.device))
    return name, len(chunk), problems


def _redraw(style: Style, batch: Sequence[tuple[Path, NDArray[np.uint8]]], device: torch.device) -> None:
    pixels = torch.from_numpy(np.stack([image for _, image in batch])).to(device)
    with torch.inference_mode():
        made = style(pixels.permute(0, 3, 1, 2).float() / 255)
    if not made.isfinite().all():
        got, remedy = "NaN or inf", "The weights do not fit the style: get them again from their source."
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
