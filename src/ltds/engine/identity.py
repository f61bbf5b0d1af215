"""The identity of a run: what decides its outcome, in one hash."""

from __future__ import annotations

import hashlib
import json

from ltds.engine.config import RunConfig


def identity(config: RunConfig, data: str) -> str:
    """A hash of the dataset's checksum and of every setting but the place of the data and those of the machine.

    What is only written beside the run does not count either.
    """
    settings = config.to_dict()
    del settings["data"]["root"]
    for name in ("device", "threads", "frechet_every", "tensorboard"):
        del settings["run"][name]
    return hashlib.sha256(json.dumps([data, settings], sort_keys=True).encode()).hexdigest()
