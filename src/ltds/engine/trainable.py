"""Whether a dataset has what a run needs, known before anything is computed."""

from __future__ import annotations

import numpy as np

from ltds.core.errors import DataError
from ltds.core.task import Task
from ltds.data.manifest import Manifest
from ltds.engine.config import RunConfig


def trainable_task(manifest: Manifest, held_out: str | None) -> Task:
    """The problem of a run that holds this domain out; raises if it cannot be trained or tested."""
    task = manifest.task(held_out)
    trained = np.flatnonzero(task.class_counts)
    if len(trained) < 2:
        raise DataError(
            f"Expected training images of two classes or more, but the source domains of '{manifest.name}' have only "
            f"'{task.classes[trained[0]]}'. Two classes are needed: add images of another one."
        )
    tested = manifest.test_rows(held_out)
    if not len(tested):
        raise DataError(
            f"Expected '{manifest.name}' to have test images, but all of its images are for training and validation. "
            "Mark some with the split 'test' in manifest.csv, so that the outcome can be measured."
        )
    if held_out is not None and manifest.domain_index(held_out) not in manifest.domain_ids[tested]:
        raise DataError(
            f"Expected the held-out domain '{held_out}' of '{manifest.name}' to have test images, because the outcome "
            "is measured on them, but it has none. Hold out another domain, or give it images of the split 'test'."
        )
    return task


def require_sources(config: RunConfig, manifest: Manifest, held_out: str | None) -> None:
    """Refuse a method that needs more domains than a run without this one has."""
    sources = [domain for domain in manifest.domains if domain != held_out]
    config.method_entry.method.require_sources(config.method, sources, config.method_name)


def has_known_validation(manifest: Manifest, task: Task) -> bool:
    """Whether the source domains have validation images of known classes."""
    rows = np.concatenate([manifest.rows("val", source) for source in task.sources])
    return not np.isin(manifest.labels[rows], task.open_classes).all()


def require_validation(config: RunConfig, manifest: Manifest) -> None:
    """Refuse settings that choose something on validation images, if there are none of known classes."""
    if config.method_entry.method.needs_validation(config.method):
        purpose = f"method '{config.method_name}', which chooses a setting on them"
        require_known_validation(config, manifest, purpose, "use another method")
    elif config.averaging.name == "swad":
        purpose = "averaging.name=swad, which chooses its window on them"
        require_known_validation(config, manifest, purpose, "use averaging.name=ema")


def require_known_validation(config: RunConfig, manifest: Manifest, purpose: str, instead: str) -> None:
    """Raise if there are no validation images of known classes, which something in the settings needs."""
    if not has_known_validation(manifest, manifest.task(config.data.held_out or None)):
        raise DataError(
            f"Expected validation images of known classes in the source domains for {purpose}, but got none. Mark some "
            f"training images with the split 'val' in manifest.csv, or {instead}."
        )
