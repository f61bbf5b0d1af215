"""Datasets as people name them: an embedded one by its name, their own by its folder."""

from __future__ import annotations

import os
from pathlib import Path

from ltds.cli.screen import SCREEN
from ltds.core.config import parse
from ltds.data.datasets.bestiary import BestiaryConfig, build
from ltds.data.manifest import Manifest


def data_home() -> Path:
    """Where embedded datasets are built: $LTDS_DATA, or `data` in the current folder."""
    return Path(os.environ.get("LTDS_DATA", "data"))


def open_data(name: str) -> Manifest:
    """The dataset in the folder `name`, or the embedded one called `name`, built first where need be."""
    if name != "bestiary" or (Path(name) / "manifest.json").is_file():
        return Manifest.read(Path(name))
    root = data_home() / name
    config = BestiaryConfig()
    if (root / "manifest.json").is_file():  # built before, perhaps with other settings: take it as it is
        config = parse(BestiaryConfig, Manifest.read(root).provenance.get("config", {}))
    return build(root, config, progress=SCREEN)
