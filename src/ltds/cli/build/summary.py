"""What to say about a dataset: its size, what a reader of its numbers must know, and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ltds.cli.screen import SCREEN
from ltds.core.text import few

if TYPE_CHECKING:
    from ltds.data.manifest import Manifest


def print_summary(manifest: Manifest) -> None:
    """Say what was built and what comes next; print the folder to standard output."""
    from ltds.data.stylelist import missing_styles

    images = ", ".join(f"{len(manifest.rows(split))} {split}" for split in ("train", "val", "test"))
    SCREEN.say(
        f"{manifest.name}: {images} images of {len(manifest.classes)} classes in {len(manifest.domains)} domains"
    )
    for note in notes(manifest):
        SCREEN.say(note)
    missing = sum(missing_styles(manifest.root).values())
    if missing:
        SCREEN.say(f"{missing} stylised images are to be made: ltds data stylize {shlex.quote(str(manifest.root))}")
    print(manifest.root)


def notes(manifest: Manifest) -> list[str]:
    """What a reader of this dataset's numbers must know."""
    facts = manifest.provenance.get("facts", {})
    return [
        *manifest.provenance.get("notes", ()),
        *_repeated_images(manifest),
        *_images_left_out(manifest),
        *(f"{name.replace('_', ' ')}: {count}" for name, count in facts.items() if isinstance(count, int) and count),
    ]


def _repeated_images(manifest: Manifest) -> list[str]:
    """A line for each split that shares images with the test split."""
    lines = []
    for split, use in (("train", "trained on"), ("val", "used to choose the model")):
        repeated, all_test = manifest.test_images_also_in(split), manifest.counts("test").sum(axis=1)
        shares = [f"{d} {n} of {m}" for d, n, m in zip(manifest.domains, repeated, all_test, strict=True) if n]
        if shares:
            lines.append(f"test images that are also {use}, unless the domain is held out: {', '.join(shares)}")
    return lines


def _images_left_out(manifest: Manifest) -> list[str]:
    images = list(manifest.provenance.get("left_out") or ())
    return [f"left out, as they cannot be decoded: {few(images)}"] if images else []
