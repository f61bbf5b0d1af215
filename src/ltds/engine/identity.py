"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ltds.core.added import as_before
from ltds.core.files import cached_sha256
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.semantics import names_other_table, semantics_checksum
from ltds.nn.backbones import pretrained_folder
from ltds.nn.hugging_face import weights_file
from ltds.nn.libraries import library_of

# Settings of [run] that say how a run is computed and what is written, not what it computes.
EXECUTION_SETTINGS = (
    "device",
    "threads",
    "ranks",
    "sync_batchnorm",
    "rank_timeout",
    "compile",
    "look_every",
    "frechet_every",
    "tensorboard",
)


RANDOM = "random"  # in place of a checksum, where a folder that may hold weights has none


def file_checksums(config: RunConfig) -> dict[str, str]:
    """The checksum of each file that a setting names, by the setting: the content decides a run, not the path.

    Weights may also be a name of those that come with a package. backbone.name may name a folder, whose weights count.
    Class embeddings: `semantics_checksum`.
    """
    named = {"data.features": config.data.features, "backbone.weights": config.backbone.weights}
    checksums = {name: cached_sha256(Path(file)) for name, file in named.items() if file and Path(file).is_file()}
    if (folder := pretrained_folder(config.backbone)) is not None:
        file = weights_file(folder)
        checksums["backbone.name"] = cached_sha256(file) if file else RANDOM
    return checksums


def identity(config: RunConfig, manifest: Manifest) -> str:
    """A hash of the dataset, the class embeddings and all settings except paths, device, threads, ranks and logging."""
    settings = _portable_settings(config, manifest)
    if library_of(config.backbone.name) == "hf":  # backbone.architecture says which network it is
        settings["backbone"]["name"] = f"hf:{file_checksums(config).get('backbone.name', '')}"
    return _hash(config, manifest, settings)


def former_identities(config: RunConfig, manifest: Manifest) -> tuple[str, ...]:
    """What earlier versions called the same run: a checkpoint of theirs belongs to it.

    They took the folder of hf:FOLDER by its path, whatever weights were in it.
    """
    if library_of(config.backbone.name) != "hf":
        return ()
    return (_hash(config, manifest, _portable_settings(config, manifest)),)


def _portable_settings(config: RunConfig, manifest: Manifest) -> dict[str, Any]:
    """The settings that decide the outcome. Files count by their content; a folder of hf:FOLDER is still a path."""
    settings, files = config.to_dict(), file_checksums(config)
    del settings["data"]["root"]
    if features := settings["data"]["features"]:
        settings["data"]["features"] = files.get("data.features", f"missing: {Path(features)}")
    if "backbone.weights" in files:
        settings["backbone"]["weights"] = files["backbone.weights"]
    # The content of the file counts, not its path; and a dataset's own attributes are scaled on reading.
    settings["semantics"]["table"] = names_other_table(config, manifest)
    for group in settings:
        for name in [name for name, value in settings[group].items() if as_before(f"{group}.{name}", value)]:
            del settings[group][name]
    for name in EXECUTION_SETTINGS:
        settings["run"].pop(name, None)  # gone already where it was added later and is as before
    return settings


def _hash(config: RunConfig, manifest: Manifest, settings: dict[str, Any]) -> str:
    content = [manifest.identity, semantics_checksum(config, manifest), settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
