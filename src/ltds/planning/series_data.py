"""What a series of runs was started on: recorded with it, and compared before each of its runs begins or goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ltds.core.errors import CheckpointError
from ltds.core.files import cached_sha256
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.same_images import CONTENT_KEY, image_content
from ltds.engine.semantics import semantics_checksum

REMEDY = "or train a new series in another folder."


def series_data(config: RunConfig, manifest: Manifest) -> dict[str, str]:
    """Checksums of all that a single run compares on resuming, without what these settings do not use."""
    files = {"features": Path(config.data.features), "weights": Path(config.backbone.weights)}
    checksums = {
        "data": manifest.identity,
        CONTENT_KEY: image_content(config, manifest),
        "semantics": semantics_checksum(config, manifest),
        **{name: cached_sha256(file) for name, file in files.items() if file.is_file()},
    }
    return {name: checksum for name, checksum in checksums.items() if checksum}


def require_same_data(path: Path, before: Mapping[str, str], config: RunConfig, manifest: Manifest) -> None:
    """Refuse a run on other data than the first of its series: their numbers would be averaged.

    A series from before its data was recorded goes on. So does one whose file is missing: reading it says so.
    """
    now = series_data(config, manifest)
    for name, checksum in now.items():
        if before.get(name, checksum) != checksum:
            what, got = _wording(name, config, manifest)
            raise CheckpointError(
                f"Expected the {what} that '{path}' was started with, but {got}. Restore the {what}, {REMEDY}"
            )


def _wording(name: str, config: RunConfig, manifest: Manifest) -> tuple[str, str]:
    """What differs, and what came instead."""
    wordings = {
        "data": ("dataset", f"'{manifest.root}' has other images, classes or splits"),
        CONTENT_KEY: ("images", f"'{manifest.root}' has others under the same names"),
        "semantics": ("class embeddings", f"those of '{config.semantics.table or manifest.root}' have changed since"),
        "features": ("features", f"'{config.data.features}' holds others now"),
        "weights": ("pretrained weights", f"'{config.backbone.weights}' holds others now"),
    }
    return wordings[name]
