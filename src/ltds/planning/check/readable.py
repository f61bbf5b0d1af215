"""A dataset without the images that cannot be read: what a training would use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from ltds.core.errors import DataError
from ltds.data.build.source import first_few
from ltds.data.datasets.raw import preview
from ltds.data.manifest import Manifest
from ltds.planning.check.looking import ImageLooks


def without_unreadable(manifest: Manifest, raw: Path | None, looks: ImageLooks) -> tuple[Manifest, ImageLooks]:
    """The dataset without unreadable images, classes and domains, and what was seen, by its rows.

    `raw`: the folder or list of images, whose splits are drawn without the unreadable ones; None for a dataset.
    """
    if not looks.unreadable:
        return manifest, looks
    paths = [manifest.paths[row] for row in looks.unreadable]
    try:
        readable = _without_rows(manifest, looks.unreadable) if raw is None else preview(raw, without=set(paths))
        readable = replace(readable, evaluated_only=not len(readable.rows("train")))
    except DataError as error:  # such as a class whose training images are all damaged
        number = "1 image" if len(paths) == 1 else f"{len(paths)} images"
        raise DataError(f"{error}\n- {number} cannot be read: {first_few(paths)}; repair them first") from error
    kept = [row for row in range(len(manifest)) if row not in looks.unreadable]  # in the order of the rows of both
    number_of = {row: number for number, row in enumerate(kept)}
    return readable, ImageLooks({number_of[row]: image for row, image in looks.images.items()}, {})


def _without_rows(manifest: Manifest, rows: Collection[int]) -> Manifest:
    kept = np.setdiff1d(np.arange(len(manifest)), list(rows))
    classes, labels = np.unique(manifest.labels[kept], return_inverse=True)
    domains, domain_ids = np.unique(manifest.domain_ids[kept], return_inverse=True)
    return replace(
        manifest,
        classes=tuple(manifest.classes[c] for c in classes),
        domains=tuple(manifest.domains[d] for d in domains),
        paths=tuple(manifest.paths[row] for row in kept),
        labels=labels.astype(np.int64),
        domain_ids=domain_ids.astype(np.int64),
        split_ids=manifest.split_ids[kept],
        evaluated_only=True,
    )
