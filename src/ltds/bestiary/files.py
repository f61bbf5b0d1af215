"""Many pictures as PNG files, drawn by several processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from ltds.bestiary.kinds import NAMES
from ltds.bestiary.pose import Variety
from ltds.bestiary.render import DOMAINS, render
from ltds.core.files import rename
from ltds.core.parallel import run_chunks
from ltds.core.progress import SILENT, Advance, Progress

CHUNK = 64


class PictureFile(NamedTuple):
    """Which picture: the name of the split, the indices of style and kind, and its number among those alike."""

    split: str
    domain: int
    kind: int
    instance: int

    @property
    def path(self) -> str:
        """The file, relative to the dataset's folder."""
        return f"images/{self.split}/{DOMAINS[self.domain]}/{NAMES[self.kind]}/{self.instance:04d}.png"


def draw_missing(
    root: Path,
    pictures: Sequence[PictureFile],
    *,
    size: int,
    seed: int,
    variety: Variety,
    workers: int,
    progress: Progress = SILENT,
) -> None:
    """Draw the pictures whose files are not in `root` yet."""
    missing = [picture for picture in pictures if not _is_complete(root / picture.path, size)]
    for folder in {(root / picture.path).parent for picture in missing}:
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(".*.part"):
            unfinished.unlink()
    chunks = [missing[i : i + CHUNK] for i in range(0, len(missing), CHUNK)]
    work = partial(_draw, root, size, seed, variety)
    with progress.track("Drawing Bestiary", len(pictures), len(pictures) - len(missing)) as advance:
        for _ in run_chunks(work, chunks, workers, advance, take_part=True):
            pass


def _is_complete(file: Path, size: int) -> bool:
    """Whether an earlier build left this file, and left it readable (a power cut may empty a file)."""
    if not file.is_file():
        return False
    try:
        with Image.open(file, formats=["PNG"]) as image:
            if image.size != (size, size):
                return False
            image.load()
            return True
    except OSError:
        return False


def _draw(
    root: Path, size: int, seed: int, variety: Variety, pictures: Sequence[PictureFile], advance: Advance
) -> None:
    """Draw the pictures and write them below `root`; each file appears complete or not at all."""
    for split, domain, kind, instance in pictures:
        pixels = render(kind, domain, size=size, seed=seed, split=split, instance=instance, variety=variety)
        # Not core.files.atomic: its fsync takes longer than the drawing. The builder syncs once, at the end.
        file = root / PictureFile(split, domain, kind, instance).path
        unfinished = file.with_name(f".{file.name}.{os.getpid()}.part")
        Image.fromarray(pixels).save(unfinished, "PNG")
        rename(unfinished, file)
        advance()
