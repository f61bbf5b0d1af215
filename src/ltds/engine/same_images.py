"""The images that a run was trained on, recorded as a fingerprint, and compared before the run goes on."""

from __future__ import annotations

from typing import Any

from ltds.core.errors import CheckpointError
from ltds.core.runs import RunDirectory
from ltds.data.content import sampled_content
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig

CONTENT_KEY = "content"  # in environment.json


def image_content(config: RunConfig, manifest: Manifest) -> str | None:
    """The fingerprint of the images that a run with these settings reads; None where it reads features instead."""
    return None if config.data.features else sampled_content(manifest)


def require_same_images(run: RunDirectory, environment: dict[str, Any], manifest: Manifest, now: str | None) -> None:
    """Refuse to go on with other images under the same names. Runs without a fingerprint, made before it, go on."""
    before = environment.get(CONTENT_KEY)
    if isinstance(before, str) and now is not None and before != now:
        raise CheckpointError(
            f"Expected the images that '{run.path}' was started with, but '{manifest.root}' has others under the same "
            "names. Restore them, or train a new run in another folder."
        )
