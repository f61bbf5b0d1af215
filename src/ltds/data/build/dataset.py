"""From a plan to a finished dataset folder, or an error that says what is missing. (Bestiary draws its images.)"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.files import rename
from ltds.core.progress import SILENT, Progress
from ltds.core.symbolic_links import make_link, require_links
from ltds.core.text import composed, few_quoted
from ltds.data.build.images import MakePlan, check_images
from ltds.data.build.plan import Plan
from ltds.data.build.source import LINK
from ltds.data.manifest import Manifest
from ltds.data.stylelist import STYLE_LIST_FILE, StyledImage, write_style_list

LEFT_BY_BUILDS = frozenset({LINK, "manifest.csv", "semantics", ".cache"})  # when interrupted, besides stylize.csv


def build_dataset(
    out: Path,
    source: Path,
    key: dict[str, Any],
    make_plan: MakePlan,
    *,
    damaged: str = "refuse",
    inside: bool = False,
    progress: Progress = SILENT,
    extras: Callable[[Path], None] = lambda out: None,
) -> Manifest:
    """The dataset in `out`; a finished one is not built again. `key` says what the dataset depends on.

    The images are checked first; the manifest, which makes the folder a dataset, is written last. `extras(out)` may
    write further files. `inside`: `out` may lie in the source, because the builder does not search it for images.
    """
    finished = (out / "manifest.json").is_file()
    if finished:
        manifest = _finished(out, key)
        if _points_to(out / LINK, source):
            return manifest
    else:
        if not inside:
            _require_outside(out, source)
        _require_empty(out)
    require_links(out)
    plan, left_out = check_images(make_plan, source, damaged, progress)
    new = _manifest(out, plan, left_out, key)
    if finished and (len(new) != len(manifest) or any(map(ne, _images(new), _images(manifest)))):
        rule, remedy = f"the images that '{out}' was built from", "Name that folder, or build into another folder."
        raise DataError(
            expected(f"argument 'source' ('{source}')", rule, "other names or another number of images", remedy)
        )
    out.mkdir(parents=True, exist_ok=True)
    _link(out / LINK, source)
    if finished:
        return manifest
    if plan.styles:
        write_style_list(out, _styled(new, plan))
    extras(out)
    new.write()
    return new


def _finished(out: Path, key: dict[str, Any]) -> Manifest:
    """The dataset in `out`, if it was built with this key; otherwise the error names the settings that differ."""
    manifest = Manifest.read(out)
    recorded = json.loads(json.dumps({name: manifest.provenance.get(name) for name in key}))  # tuples become lists
    if recorded == key:
        return manifest
    got = f"a dataset made by '{recorded['builder']}'"
    if recorded["builder"] == key["builder"]:
        old, new = recorded.get("config") or {}, key["config"]
        differing = [f"{name}={old.get(name)!r}" for name in {**new, **old} if old.get(name) != new.get(name)]
        changed = [name for name in key if recorded[name] != key[name]]
        got = ", ".join(differing) or f"one with other {' and '.join(changed)}"
    rule = f"empty or {key['builder']} with these settings"
    raise DataError(expected(f"'{out}'", rule, got, "Choose another folder, or delete this one."))


def _require_outside(out: Path, source: Path) -> None:
    """Refuse a folder in the source: the next build would take what is in it for images of the source."""
    if out.resolve().is_relative_to(source.resolve()):
        remedy = "Choose another folder."
        raise DataError(expected(f"'{out}'", "outside the folder of the images", f"a folder in '{source}'", remedy))


def _require_empty(out: Path) -> None:
    """Refuse a folder that contains files which an interrupted build would not have left."""
    names = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else []
    foreign = [name for name in names if name not in LEFT_BY_BUILDS | {STYLE_LIST_FILE} and not name.endswith(".part")]
    if foreign:
        remedy = "Choose another folder, or empty this one."
        raise DataError(expected(f"'{out}'", "a new or empty folder", f"{few_quoted(foreign)} in it", remedy))


def _images(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Path, class and domain of each row. Not its split: an earlier version may have drawn it in another way."""
    classes, domains = ([composed(name) for name in names] for names in (manifest.classes, manifest.domains))
    for path, label, domain in zip(manifest.paths, manifest.labels, manifest.domain_ids, strict=True):
        yield path, classes[label], domains[domain]


def _points_to(link: Path, source: Path) -> bool:
    return link.is_dir() and link.resolve() == source.resolve()


def _link(link: Path, source: Path) -> None:
    """Make `link` point to the source, atomically if it pointed elsewhere."""
    temporary = link.with_name(f".{LINK}-{os.getpid()}.part")
    temporary.unlink(missing_ok=True)
    make_link(temporary, source.resolve())
    rename(temporary, link)


def _manifest(out: Path, plan: Plan, left_out: dict[str, str], key: dict[str, Any]) -> Manifest:
    kept = [i for i in range(len(plan.paths)) if not left_out or plan.image(i) not in left_out]
    remarks = {"facts": plan.facts, "notes": plan.notes, "left_out": left_out}
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
        provenance={**key, **{name: what for name, what in remarks.items() if what}},
        test_repeats=plan.test_repeats,
        whole_held_out=plan.whole_held_out,
    )


def _styled(manifest: Manifest, plan: Plan) -> Iterator[StyledImage]:
    for path, domain in zip(manifest.paths, manifest.domain_ids, strict=True):
        style = plan.styles[domain]
        if style:
            yield StyledImage(path, f"{LINK}/{path.removeprefix(plan.prefixes[domain])}", style)
