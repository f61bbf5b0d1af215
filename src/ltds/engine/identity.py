"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from ltds.core.added import as_before
from ltds.core.files import sha256
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.semantics import names_other_table, semantics_checksum

# Settings of [run] that say how a run is computed and what is written, not what it computes.
HOW = (
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


def file_content(file: Path) -> str:
    """The checksum of a file, computed once as long as the file stays as it is: a grid asks for each of its runs."""
    status = file.stat()
    return _checksum(file.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _checksum(file: Path, size: int, modified: int) -> str:
    return sha256(file)


def identity(config: RunConfig, manifest: Manifest) -> str:
    """A hash of the dataset, the class embeddings and all settings except paths, device, threads, ranks and logging."""
    settings = config.to_dict()
    del settings["data"]["root"]
    if settings["data"]["features"]:
        file = Path(settings["data"]["features"])
        settings["data"]["features"] = file_content(file) if file.is_file() else f"missing: {file}"
    weights = Path(settings["backbone"]["weights"])
    if weights.is_file():  # otherwise the name of weights that come with a package
        settings["backbone"]["weights"] = file_content(weights)
    # The content of the file counts, not its path; and a dataset's own attributes are scaled on reading.
    settings["semantics"]["table"] = names_other_table(config, manifest)
    for group in settings:
        for name in [name for name, value in settings[group].items() if as_before(f"{group}.{name}", value)]:
            del settings[group][name]
    for name in HOW:
        settings["run"].pop(name, None)  # gone already where it was added later and is as before
    content = [manifest.identity, semantics_checksum(config, manifest), settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
