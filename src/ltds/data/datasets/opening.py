"""Datasets as people name them: the built-in one by its name, all others by their folder."""

from __future__ import annotations

import os
from pathlib import Path

from ltds.core.config import parse
from ltds.core.progress import SILENT, Progress
from ltds.data.datasets.bestiary import BestiaryConfig, build
from ltds.data.manifest import Manifest


def data_home() -> Path:
    """The folder for datasets that are built: $LTDS_DATA, or `data` in the current folder."""
    return Path(os.environ.get("LTDS_DATA", "data"))


def open_dataset(source: str | Path | Manifest, progress: Progress = SILENT) -> Manifest:
    """The dataset in the folder `source`, or the built-in "bestiary", which is built first if necessary."""
    if isinstance(source, Manifest):
        return source
    if str(source) != "bestiary" or (Path(source) / "manifest.json").is_file():
        return Manifest.read(Path(source))
    root = data_home() / "bestiary"
    config = BestiaryConfig()
    if (root / "manifest.json").is_file():  # built before, perhaps with other settings: use it as it is
        config = parse(BestiaryConfig, Manifest.read(root).provenance.get("config", {}))
    return build(root, config, progress=progress)
