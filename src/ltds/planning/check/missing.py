"""Listed images that do not exist. Damaged images are left out; these make training fail."""

from __future__ import annotations

from pathlib import Path

from ltds.data.build.source import require_files
from ltds.data.datasets.lists import BESIDE
from ltds.data.image_files import is_missing
from ltds.data.manifest import Manifest


def missing_images(listed: Manifest, raw: Path | None) -> tuple[str, ...]:
    """The paths without a file, if `raw` is a list of images. If all are missing, raises as training would."""
    if raw is None or not raw.is_file():
        return ()
    missing = tuple(path for path in listed.paths if is_missing(listed.root / path))
    if len(missing) == len(listed):
        remedy = f"Correct or delete their lines. {BESIDE}"
        require_files(listed.root, missing, f"the images of {listed.name}", remedy, links=True)
    return missing
