"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json

from ltds.engine.config import RunConfig


def identity(config: RunConfig, data: str, semantics: str) -> str:
    """A hash of the checksums of dataset and class embeddings and of every setting but places and the machine's.

    What is only written beside the run does not count either.
    """
    settings = config.to_dict()
    del settings["data"]["root"]
    settings["semantics"]["table"] = bool(settings["semantics"]["table"])  # a dataset's own is read in another way
    for name in ("device", "threads", "frechet_every", "tensorboard"):
        del settings["run"][name]
    return hashlib.sha256(json.dumps([data, semantics, settings], sort_keys=True).encode()).hexdigest()
