"""Datasets as people name them: the built-in one by its name, others by their folder, and images that are none yet."""

from __future__ import annotations

import os
from pathlib import Path

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.core.progress import SILENT, Progress
from ltds.core.text import few_quoted
from ltds.data.datasets.bestiary import BestiaryConfig, build
from ltds.data.image_files import datasets_below, images_below
from ltds.data.manifest import Manifest

BUILT_IN = "bestiary"


class ImageFolderError(DataError):
    """A folder of images, or a list of them, where a dataset was expected. `source` is its path."""

    def __init__(self, message: str, source: Path) -> None:
        super().__init__(message)
        self.source = source

    def __reduce__(self) -> tuple[type[ImageFolderError], tuple[str, Path]]:
        return ImageFolderError, (str(self), self.source)


def data_home() -> Path:
    """The folder for datasets that are built: $LTDS_DATA, or `data` in the current folder."""
    return Path(os.environ.get("LTDS_DATA", "data"))


def open_dataset(
    source: str | Path | Manifest, progress: Progress = SILENT, *, evaluated_only: bool = False
) -> Manifest:
    """The dataset in the folder `source`, or the built-in "bestiary", which is built first if necessary.

    `evaluated_only`: its classes need no training images.
    """
    if isinstance(source, Manifest):
        return source
    require_path(source)
    if str(source) != BUILT_IN or is_dataset(Path(source)):
        refuse_images(Path(source))
        _refuse_folders_without(Path(source))
        return Manifest.read(Path(source), evaluated_only=evaluated_only)
    root = data_home() / BUILT_IN
    config = BestiaryConfig()
    if is_dataset(root):  # built before, perhaps with other settings: use it as it is
        config = parse(BestiaryConfig, Manifest.read(root).provenance.get("config", {}))
    return build(root, config, progress=progress)


def require_path(source: object) -> None:
    """Raise where settings from a file or the command line name a dataset by something other than text."""
    if not isinstance(source, str | Path):
        got = f"{source!r}, a {type(source).__name__}"
        raise ConfigError(f"Expected data.root to be the path of a dataset as text, but got {got}. Set data.root=PATH.")


def is_dataset(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()


def holds_images(source: Path) -> bool:
    """Whether this is a list of images or a folder of them, and neither a dataset nor a folder with datasets only."""
    if source.is_file():
        return source.suffix.lower() in (".csv", ".txt")
    if not source.is_dir() or is_dataset(source) or (source / "manifest.csv").is_file():
        return False
    return next(images_below(source, without_datasets=True), None) is not None


def raw_images(source: str | Path | Manifest) -> Path | None:
    """The folder or list of images that `source` names; None where it names a dataset, or nothing."""
    if isinstance(source, Manifest) or str(source) == BUILT_IN:
        return None
    return Path(source) if holds_images(Path(source)) else None


def refuse_images(source: Path) -> None:
    """Raise where `source` holds images that no dataset was built from yet."""
    if not holds_images(source):
        return
    what = "a list of images" if source.is_file() else "a folder of images without a manifest.json"
    raise ImageFolderError(
        f"Expected '{source}' to be the folder of a dataset, but got {what}. "
        "Build a dataset from it first, or train on it directly: that builds one.",
        source,
    )


def _refuse_folders_without(source: Path) -> None:
    """Raise where `source` is a folder without images of its own: with datasets in it, or with nothing of use."""
    if not source.is_dir() or is_dataset(source) or (source / "manifest.csv").is_file():
        return
    inside = list(datasets_below(source))
    if inside:
        raise DataError(
            f"Expected '{source}' to be the folder of a dataset, but got a folder with {few_quoted(inside)} in it. "
            f"Name the dataset itself, such as '{source / inside[0]}'."
        )
    raise DataError(
        f"Expected '{source}' to be the folder of a dataset, or a folder of images, but got one with no images in it, "
        "and no manifest.json. Name the folder that holds them."
    )
