"""What the images in a folder were made with, so that pictures of different making are never mixed unnoticed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ltds.core.errors import DataError, expected
from ltds.core.files import sha256, write_json
from ltds.core.registry import find
from ltds.data.styles import STYLES
from ltds.data.styles.make import StyleJob, StyleOptions

RECORD = "stylize.json"
Facts = Mapping[str, object]


def claim_dataset(root: Path, jobs: Sequence[StyleJob], options: StyleOptions) -> None:
    """Note in stylize.json how each style is made; raises where it has images made in another way.

    A dataset's styles have folders of their own, so that one record holds them all.
    """
    made = {job.style for job in jobs if job.target.exists()}
    known = _read(root / RECORD)
    for style in sorted({job.style for job in jobs}):
        facts = _facts(style, options, "dataset", known.get(style, {}))
        if style in made and style in known:
            _require_same(root, style, known[style], facts)
        known[style] = facts
    write_json(root / RECORD, known)


def claim_folder(out: Path, jobs: Sequence[StyleJob], options: StyleOptions, source: Path) -> None:
    """The same for a folder of images in one style.

    There a picture has one name whatever its style, and nothing in the file tells it: another style is refused as
    soon as there are images, and so are images that no record tells of.
    """
    style = jobs[0].style
    known = _read(out / RECORD)
    if not known and (found := _some(job.target for job in jobs if job.target.exists())):
        rule, got = f"without images, or with a {RECORD} that tells their style", f"{found} without it"
        raise DataError(expected(f"'{out}'", rule, got, "Name another folder with --out, or delete those images."))
    facts = _facts(style, options, str(source.resolve()), known.get(style, {}))
    if known and any(file.is_file() and file.name != RECORD for file in out.rglob("[!.]*")):
        others = sorted(known.keys() - {style})
        if others:
            remedy = f"Name another folder with --out; or delete the images and '{out / RECORD}'."
            got = f"images in {', '.join(others)}"
            raise DataError(expected(f"'{out}'", f"a folder for '{style}' alone", got, remedy))
        _require_same(out, style, known[style], facts)
    write_json(out / RECORD, {style: facts})


def _facts(style: str, options: StyleOptions, source: str, before: Facts) -> Facts:
    weights = options.weights.get(style)
    return {
        "size": options.size,
        "version": find("style", style, STYLES).version,
        "weights": _sha256(weights) if weights else before.get("weights"),  # none are asked for when all is made
        "source": source,
    }


def _require_same(folder: Path, style: str, before: Facts, facts: Facts) -> None:
    other = [name for name in facts if before.get(name) != facts[name]]
    if other:
        got = ", ".join(f"{name} {before.get(name)}" for name in other)
        rule = ", ".join(f"{name} {facts[name]}" for name in other)
        remedy = f"Go on with the settings it was begun with; or delete those images and '{folder / RECORD}'."
        raise DataError(expected(f"the '{style}' images in '{folder}'", f"made with {rule}", got, remedy))


def _some(files: Iterable[Path]) -> str:
    found = list(files)
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"'{found[0]}'{more}" if found else ""


def _read(file: Path) -> dict[str, Facts]:
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
