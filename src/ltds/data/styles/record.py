"""A record of how the images in a folder were stylised, so that images made in different ways are never mixed."""

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
StyleFacts = Mapping[str, object]


def claim_dataset(root: Path, jobs: Sequence[StyleJob], options: StyleOptions) -> None:
    """Record in stylize.json how each style is made; raises if images of it were made in another way.

    Each style of a dataset has its own folder, so that one record is enough for all.
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

    The name of a file does not show its style, so another style is refused as soon as the folder has images, and
    so are images without a record.
    """
    style = jobs[0].style
    known = _read(out / RECORD)
    if not known and (existing := _first(job.target for job in jobs if job.target.exists())):
        rule, got = f"without images, or with a {RECORD} that says their style", f"{existing} without it"
        raise DataError(expected(f"'{out}'", rule, got, "Choose another folder, or delete those images."))
    facts = _facts(style, options, str(source.resolve()), known.get(style, {}))
    if known and any(file.is_file() and file.name != RECORD for file in out.rglob("[!.]*")):
        others = sorted(known.keys() - {style})
        if others:
            remedy = f"Choose another folder; or delete the images and '{out / RECORD}'."
            got = f"images in {', '.join(others)}"
            raise DataError(expected(f"'{out}'", f"a folder for '{style}' alone", got, remedy))
        _require_same(out, style, known[style], facts)
    write_json(out / RECORD, {style: facts})


def _facts(style: str, options: StyleOptions, source: str, before: StyleFacts) -> StyleFacts:
    weights = options.weights.get(style)
    return {
        "size": options.size,
        "version": find("style", style, STYLES).version,
        "weights": _sha256(weights) if weights else before.get("weights"),  # not needed when all images exist
        "source": source,
    }


def _require_same(folder: Path, style: str, before: StyleFacts, facts: StyleFacts) -> None:
    other = [name for name in facts if before.get(name) != facts[name]]
    if other:
        got = ", ".join(f"{name} {before.get(name)}" for name in other)
        rule = ", ".join(f"{name} {facts[name]}" for name in other)
        remedy = f"Use the settings that they were made with; or delete those images and '{folder / RECORD}'."
        raise DataError(expected(f"the '{style}' images in '{folder}'", f"made with {rule}", got, remedy))


def _first(files: Iterable[Path]) -> str:
    names = list(files)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"'{names[0]}'{more}" if names else ""


def _read(file: Path) -> dict[str, StyleFacts]:
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        remedy = "Delete it and the images in its folder."
        raise DataError(expected(f"'{file}'", "a record of how the images were made", "something else", remedy))
    return content


def _sha256(file: Path) -> str:
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a file of weights", "nothing there", "Check the path of the weights."))
    return sha256(file)
