"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json

from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig
from ltds.engine.semantics import semantics_checksum


def identity(config: RunConfig, manifest: Manifest) -> str:
    """A hash of the checksums of dataset and class embeddings and of every setting but places and the machine's.

    What is only written beside the run does not count either.
    """
    settings = config.to_dict()
    del settings["data"]["root"]
    settings["semantics"]["table"] = bool(settings["semantics"]["table"])  # a dataset's own is read in another way
    for name in ("device", "threads", "frechet_every", "tensorboard"):
        del settings["run"][name]
    content = [manifest.checksum, semantics_checksum(config, manifest), settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
