"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ltds.core.added import as_before
from ltds.core.files import cached_sha256
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.semantics import names_other_table, semantics_checksum

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


def file_checksums(config: RunConfig) -> dict[str, str]:
    """The checksum of each file that a setting names, by the setting: the content decides a run, not the path.

    Weights may also be a name of those that come with a package. Class embeddings: `semantics_checksum`.
    """
    named = {"data.features": config.data.features, "backbone.weights": config.backbone.weights}
    return {name: cached_sha256(Path(file)) for name, file in named.items() if file and Path(file).is_file()}


def identity(config: RunConfig, manifest: Manifest) -> str:
    """A hash of the dataset, the class embeddings and all settings except paths, device, threads, ranks and logging."""
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
    content = [manifest.identity, semantics_checksum(config, manifest), settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
