"""A dataset without the images that cannot be read: what training would use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ltds.core.errors import DataError
from ltds.core.text import count, few_quoted
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
    kept = np.isin(np.arange(len(manifest)), list(looks.unreadable), invert=True)
    try:
        # Without training images, a dataset can still be looked at.
        readable = manifest.with_rows(kept, evaluated_only=True) if raw is None else preview(raw, without=set(paths))
        readable = replace(readable, evaluated_only=not len(readable.rows("train")))
    except DataError as error:  # such as a class whose training images are all damaged
        raise DataError(
            f"{error}\n- {count(len(paths), 'image')} cannot be read: {few_quoted(paths)}; repair them first"
        ) from error
    number_of = {row: number for number, row in enumerate(np.flatnonzero(kept).tolist())}  # in the order of both
    return readable, ImageLooks({number_of[row]: image for row, image in looks.images.items()}, {})
