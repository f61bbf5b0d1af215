"""Build the bestiary: long-tailed training images, validation of what was trained, a balanced test, and semantics."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ltds.core.errors import DataError, expected
from ltds.core.files import write_json, write_text
from ltds.core.progress import SILENT, Progress
from ltds.data.builders.bestiary.kinds import KINDS, NAMES, attribute_table
from ltds.data.builders.bestiary.plan import BestiaryConfig, plan
from ltds.data.builders.bestiary.render import DOMAINS, RENDERER, Address, render_files
from ltds.data.builders.bestiary.sentences import describe
from ltds.data.manifest import SPLITS, Manifest

_CHUNK = 64


def build(
    out: Path,
    config: BestiaryConfig = BestiaryConfig(),  # noqa: B008 (frozen)
    *,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> Manifest:
    """The dataset in `out`, rendered unless it is there already; an interrupted build goes on where it stopped.

    The manifest, which makes the folder a dataset, is written last. `workers` defaults to the number of processors;
    they are spawned, so a script must call this under `if __name__ == "__main__":` unless `workers=1`.
    """
    provenance = _provenance(config)
    if (out / "manifest.json").is_file():
        return _finished(out, provenance)
    _claim(out, provenance)
    images = plan(config)
    _render_missing(out, config, images, workers or os.cpu_count() or 1, progress)
    _write_semantics(out / "semantics")
    if hasattr(os, "sync"):
        os.sync()
    manifest = Manifest(
        root=out,
        name="bestiary",
        classes=NAMES,
        domains=DOMAINS,
        paths=tuple(image.path for image in images),
        labels=np.array([image.kind for image in images], np.int64),
        domain_ids=np.array([image.domain for image in images], np.int64),
        split_ids=np.array([SPLITS.index(image.split) for image in images], np.int64),
        licence="CC0-1.0",
        provenance=provenance,
    )
    manifest.write()
    (out / "building.json").unlink()
    return manifest


def _provenance(config: BestiaryConfig) -> dict[str, Any]:
    return {"builder": "bestiary", "config": config.model_dump(mode="json"), "renderer": RENDERER}


def _finished(out: Path, provenance: dict[str, Any]) -> Manifest:
    """The dataset that is there, if it is this one."""
    manifest = Manifest.read(out)
    if manifest.provenance != provenance:
        raise _other_dataset(out, manifest.provenance, provenance)
    return manifest


def _claim(out: Path, provenance: dict[str, Any]) -> None:
    """Note whose images will lie in `out`, so that the files of another, interrupted build are never taken over."""
    note = out / "building.json"
    if note.is_file():
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            found = "an unreadable building.json"
        if found != provenance:
            raise _other_dataset(out, found, provenance)
    elif (out / "images").exists():
        raise _other_dataset(out, "images of unknown origin", provenance)
    write_json(note, provenance)


def _other_dataset(out: Path, found: object, wanted: dict[str, Any]) -> DataError:
    """The error for a folder that holds something else; it names the first settings that differ."""
    got: object = found
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        config = found["config"]
        differing = [f"{key}={config.get(key)}" for key, value in wanted["config"].items() if config.get(key) != value]
        got = ", ".join(differing) or f"renderer {found.get('renderer')}"
    rule = f"empty or the bestiary with these settings (renderer {RENDERER})"
    return DataError(expected(f"'{out}'", rule, got, "Choose another folder with --out, or delete this one."))


def _render_missing(
    out: Path, config: BestiaryConfig, images: Sequence[Address], workers: int, progress: Progress
) -> None:
    """Render the images whose files are not there yet."""
    missing = [image for image in images if not _is_whole(out / image.path, config.size)]
    for folder in {(out / image.path).parent for image in missing}:
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(".*.part"):
            unfinished.unlink()
    chunks = [missing[i : i + _CHUNK] for i in range(0, len(missing), _CHUNK)]
    work = partial(render_files, out, size=config.size, seed=config.seed, variety=config.variety)
    with progress.track("Drawing the bestiary", len(images), len(images) - len(missing)) as advance:
        for done in _run(work, chunks, min(workers, len(chunks))):
            advance(done)


def _is_whole(path: Path, size: int) -> bool:
    """Whether an earlier build left this image, and left it readable (a power cut may empty a file)."""
    if not path.is_file():
        return False
    try:
        with Image.open(path) as image:
            image.load()
            return image.size == (size, size)
    except OSError:
        return False


def _run(work: partial[int], chunks: Sequence[Sequence[Address]], workers: int) -> Iterable[int]:
    """How many images each chunk held, as chunks are done; after an error, the chunks not begun are dropped."""
    if workers <= 1:
        yield from map(work, chunks)
        return
    # Spawned, not forked: the caller may have threads (torch has), which a fork would break.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(work, chunk) for chunk in chunks]
        try:
            for job in as_completed(jobs):
                yield job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _write_semantics(folder: Path) -> None:
    """attributes.csv (class, then numbers) and descriptions.csv (class, description)."""
    table, names = attribute_table()
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in zip(NAMES, table, strict=True)]
    _write_csv(folder / "attributes.csv", [["class", *names], *rows])
    _write_csv(folder / "descriptions.csv", [["class", "description"], *([k.name, describe(k)] for k in KINDS)])


def _write_csv(path: Path, rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_text(path, text.getvalue())
