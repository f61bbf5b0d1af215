"""What the images in a folder were made with, so that pictures of different making are never mixed unnoticed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256, write_json
from ltds.core.names import find
from ltds.data.styles import STYLES
from ltds.data.styles.make import Means

RECORD = "stylize.json"


def claim(folder: Path, styles: Iterable[str], means: Means, source: str) -> None:
    """Note in `folder`/stylize.json how each style is made; raises where it was made in another way before."""
    known = _read(folder / RECORD)
    for style in styles:
        weights, before = means.weights.get(style), known.get(style, {})
        facts: dict[str, object] = {
            "size": means.size,
            "version": find("style", style, STYLES).version,
            "weights": _sha256(weights) if weights else before.get("weights"),  # none are asked for when all is made
            "source": source,
        }
        known[style] = facts
        if before and before != facts:
            got = ", ".join(f"{name} {before.get(name)}" for name in facts if before.get(name) != facts[name])
            rule = ", ".join(f"{name} {facts[name]}" for name in facts if before.get(name) != facts[name])
            remedy = f"Go on with the settings it was begun with; or delete those images and '{folder / RECORD}'."
            raise DataError(expected(f"the '{style}' images in '{folder}'", f"made with {rule}", got, remedy))
    write_json(folder / RECORD, known)


def _read(file: Path) -> dict[str, Mapping[str, object]]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        remedy = "Delete it and the images beside it."
        raise DataError(expected(f"'{file}'", "a record of how the images were made", "something else", remedy))
    return found


def _sha256(file: Path) -> str:
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a file of weights", "nothing there", "Check the path after --weights."))
    return sha256(file)
