"""From a plan to a finished dataset folder, or an error that says what is missing; bestiary alone ends elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.data.build.images import Draft, settle
from ltds.data.build.plan import Plan
from ltds.data.build.source import LINK, some
from ltds.data.manifest import Manifest
from ltds.data.stylelist import FILE, StyledImage, write_style_list

_OURS = {LINK, FILE, "manifest.csv", "semantics", ".cache"}


def build_dataset(
    out: Path,
    source: Path,
    key: dict[str, Any],
    draft: Draft,
    *,
    damaged: str = "refuse",
    progress: Progress = SILENT,
    extras: Callable[[Path], None] = lambda out: None,
) -> Manifest:
    """The dataset in `out`; what is there already is not made again. `key` says what it depends on.

    The source is checked first; the manifest, which makes the folder a dataset, is written last.
    """
    finished = (out / "manifest.json").is_file()
    if finished:
        manifest = _finished(out, key)
        if _points_to(out / LINK, source):
            return manifest
    else:
        _require_empty(out, source)
    planned, left_out = settle(draft, source, damaged, progress)
    made = _manifest(out, planned, left_out, key)
    if finished and made.checksum != manifest.checksum:
        rule, remedy = f"the images that '{out}' was built from", "Name that folder, or build elsewhere with --out."
        raise DataError(expected(f"--source '{source}'", rule, "other names or numbers of images", remedy))
    out.mkdir(parents=True, exist_ok=True)
    _link(out / LINK, source)
    if not finished:
        if planned.styles:
            write_style_list(out, _styled(made, planned))
        extras(out)
        made.write()
    return made


def _finished(out: Path, key: dict[str, Any]) -> Manifest:
    """The dataset that is there, if it is this one; otherwise the error names the first settings that differ."""
    manifest = Manifest.read(out)
    found = json.loads(json.dumps({name: manifest.provenance.get(name) for name in key}))  # tuples become lists
    if found == key:
        return manifest
    got = f"a dataset made by '{found['builder']}'"
    if found["builder"] == key["builder"]:
        old, new = found.get("config") or {}, key["config"]
        differing = [f"{name}={old.get(name)!r}" for name in new if old.get(name) != new[name]]
        changed = [name for name in key if found[name] != key[name]]
        got = ", ".join(differing) or f"one with other {' and '.join(changed)}"
    rule = f"empty or {key['builder']} with these settings"
    raise DataError(expected(f"'{out}'", rule, got, "Choose another folder with --out, or delete this one."))


def _require_empty(out: Path, source: Path) -> None:
    """Refuse a folder with anything in it that an interrupted build of ours would not have left."""
    if out.resolve().is_relative_to(source.resolve()):
        remedy = "Choose another folder with --out."
        raise DataError(expected(f"'{out}'", "outside of the images' folder", f"a folder in '{source}'", remedy))
    names = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else []
    foreign = [name for name in names if name not in _OURS and not name.endswith(".part")]
    if foreign:
        remedy = "Choose another folder with --out, or empty this one."
        raise DataError(expected(f"'{out}'", "a new or empty folder", f"{some(foreign)} in it", remedy))


def _points_to(link: Path, source: Path) -> bool:
    return link.is_dir() and link.resolve() == source.resolve()


def _link(link: Path, source: Path) -> None:
    """Make `link` point to the source, in one step where it pointed elsewhere."""
    temporary = link.with_name(f".{LINK}-{os.getpid()}.part")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(source.resolve(), target_is_directory=True)
    os.replace(temporary, link)


def _manifest(out: Path, plan: Plan, left_out: dict[str, str], key: dict[str, Any]) -> Manifest:
    kept = [i for i in range(len(plan.paths)) if not left_out or plan.image(i) not in left_out]
    said = {"facts": plan.facts, "notes": plan.notes, "left_out": left_out}
    return Manifest(
        root=out,
        name=plan.name,
        classes=plan.classes,
        domains=plan.domains,
        paths=tuple(plan.paths[i] for i in kept),
        labels=np.array(plan.labels, np.int64)[kept],
        domain_ids=np.array(plan.domain_ids, np.int64)[kept],
        split_ids=np.array(plan.split_ids, np.int64)[kept],
        licence=plan.licence,
        provenance={**key, **{name: what for name, what in said.items() if what}},
        test_repeats=plan.test_repeats,
    )


def _styled(manifest: Manifest, plan: Plan) -> Iterator[StyledImage]:
    for path, domain in zip(manifest.paths, manifest.domain_ids, strict=True):
        style = plan.styles[domain]
        if style:
            yield StyledImage(path, f"{LINK}/{path.removeprefix(plan.prefixes[domain])}", style)
