"""What a run reads, as checksums: recorded when it starts, and compared before it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.data.content import sampled_content
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.identity import file_checksums
from ltds.engine.semantics import semantics_checksum
from ltds.nn.backbones import pretrained_folder

CONTENT_KEY = "content"  # in environment.json
# Names here, settings in environment.json.
_FILES = {"features": "data.features", "weights": "backbone.weights", "folder": "backbone.name"}


def image_content(config: RunConfig, manifest: Manifest) -> str | None:
    """The fingerprint of the images that a run with these settings reads; None where it reads features instead."""
    return None if config.data.features else sampled_content(manifest)


def data_checksums(config: RunConfig, manifest: Manifest) -> dict[str, str]:
    """Checksums of dataset, images, class embeddings, features and weights, without what these settings do not use."""
    files = file_checksums(config)
    checksums = {
        "data": manifest.identity,
        CONTENT_KEY: image_content(config, manifest),
        "semantics": semantics_checksum(config, manifest),
        **{name: files.get(setting) for name, setting in _FILES.items()},
    }
    return {name: checksum for name, checksum in checksums.items() if checksum}


def readable_environment(run: RunDirectory) -> dict[str, Any]:
    """environment.json; empty if it is damaged, which is an error of this run alone and not of a whole benchmark."""
    try:
        return run.read_environment()
    except CheckpointError:
        return {}


def recorded_checksums(environment: Mapping[str, Any]) -> dict[str, str]:
    """`data_checksums` when a run with this environment.json started, as far as it recorded them."""
    files = environment.get("files")
    files = files if isinstance(files, dict) else {}
    checksums = {name: environment.get(name) for name in ("data", CONTENT_KEY, "semantics")}
    checksums |= {name: files.get(setting) for name, setting in _FILES.items()}
    return {name: checksum for name, checksum in checksums.items() if isinstance(checksum, str)}


def require_same_data(
    path: Path,
    before: Mapping[str, str],
    now: Mapping[str, str],
    config: RunConfig,
    manifest: Manifest,
    *,
    remedy: str = "or train a new run in another folder.",
) -> None:
    """Refuse to go on, in the folder `path`, with other data than it was started with.

    What was not recorded, in older versions, is not compared. Nor is a file that is missing: reading it says so.
    """
    for name, checksum in now.items():
        if before.get(name, checksum) != checksum:
            what, got = _wording(name, config, manifest)
            raise CheckpointError(
                f"Expected the {what} that '{path}' was started with, but {got}. Restore the {what}, {remedy}"
            )


def _wording(name: str, config: RunConfig, manifest: Manifest) -> tuple[str, str]:
    """What differs, and what came instead."""
    wordings = {
        "data": ("dataset", f"'{manifest.root}' has other images, classes or splits"),
        CONTENT_KEY: ("images", f"'{manifest.root}' has others under the same names"),
        "semantics": ("class embeddings", f"those of '{config.semantics.table or manifest.root}' have changed since"),
        "features": ("features", f"'{config.data.features}' holds others now"),
        "weights": ("pretrained weights", f"'{config.backbone.weights}' holds others now"),
        "folder": ("pretrained weights", f"'{pretrained_folder(config.backbone)}' holds others now, or none"),
    }
    return wordings[name]
