"""Bestiary, the dataset that comes with the package: long-tailed training images, and a test set of equal classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ltds.bestiary.files import PictureFile, draw_missing
from ltds.bestiary.kinds import KINDS, NAMES, attribute_table
from ltds.bestiary.pose import Variety
from ltds.bestiary.render import DOMAINS, LARGEST, RENDERER, SMALLEST
from ltds.bestiary.sentences import describe
from ltds.core.config import Settings
from ltds.core.errors import expected
from ltds.core.files import flush_disk, write_csv
from ltds.core.locks import locked
from ltds.core.processor import cores
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import numpy_generator
from ltds.data.build.claim import claim, read_finished, release
from ltds.data.build.longtail import domains_of_classes, longtail_counts, split_over_domains
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS


class BestiaryConfig(Settings):
    """How many images of which kind in which style, how large, and how varied."""

    size: int = Field(default=32, ge=SMALLEST, le=LARGEST, description="side of an image in pixels")
    n_max: int = Field(default=313, ge=1, description="training images of the most common kind")
    n_min: int = Field(default=4, ge=1, description="training images of the rarest kind")
    val_per_pair: int = Field(default=4, ge=0, description="validation images of each trained (style, kind)")
    test_per_pair: int = Field(default=42, ge=1, description="test images of each (style, kind)")
    head: float = Field(default=0.2, ge=0.0, le=1.0, description="share of kinds that have images in every style")
    fewest: int = Field(default=2, ge=1, le=len(DOMAINS), description="number of styles of the rarest kinds")
    exclusive: int = Field(default=2, ge=0, description="for each style: number of kinds that no other style has")
    seed: int = Field(default=0, ge=0, description="seed of the pictures and of their distribution over styles")
    variety: Variety = Field(default=Variety(), description="how strongly pictures of one kind differ")

    @model_validator(mode="after")
    def _ordered(self) -> BestiaryConfig:
        if self.n_min > self.n_max:
            got = f"n_min={self.n_min}, n_max={self.n_max}"
            raise ValueError(expected("n_min", "at most n_max", got, "Swap them, or raise n_max."))
        return self


def build(
    out: Path,
    config: BestiaryConfig = BestiaryConfig(),  # noqa: B008 (frozen)
    *,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> Manifest:
    """The dataset in `out`, drawn unless it is there already; an interrupted build continues where it stopped.

    The manifest, which makes the folder a dataset, is written last. `workers` defaults to the number of processors.
    """
    provenance = {"builder": "bestiary", "config": config.model_dump(mode="json"), "renderer": RENDERER}
    if (out / "manifest.json").is_file():
        return read_finished(out, provenance)
    with locked(out, wait=True):  # whoever comes second waits, and finds it complete
        if (out / "manifest.json").is_file():
            return read_finished(out, provenance)
        return _draw_all(out, config, provenance, workers or cores(), progress)


def _draw_all(
    out: Path, config: BestiaryConfig, provenance: dict[str, Any], workers: int, progress: Progress
) -> Manifest:
    """Draw what is missing, then write the manifest."""
    claim(out, provenance)
    pictures = list_pictures(config)
    draw_missing(
        out,
        pictures,
        size=config.size,
        seed=config.seed,
        variety=config.variety,
        workers=workers,
        progress=progress,
    )
    _write_semantics(out / "semantics")
    flush_disk(out)
    manifest = Manifest(
        root=out,
        name="bestiary",
        classes=NAMES,
        domains=DOMAINS,
        paths=tuple(picture.path for picture in pictures),
        labels=np.array([picture.kind for picture in pictures], np.int64),
        domain_ids=np.array([picture.domain for picture in pictures], np.int64),
        split_ids=np.array([SPLITS.index(picture.split) for picture in pictures], np.int64),
        licence="CC0-1.0",
        provenance=provenance,
    )
    manifest.write()
    release(out)
    return manifest


def list_pictures(config: BestiaryConfig) -> list[PictureFile]:
    """Every picture of the dataset, by split, style, kind and number.

    Training: long-tailed counts, distributed over the styles that each kind may have. Validation: `val_per_pair` for
    each pair with training images, and none for others. Test: `test_per_pair` for all pairs.
    """
    train = _train_counts(config)
    val = np.where(train > 0, config.val_per_pair, 0)
    test = np.full_like(train, config.test_per_pair)
    return [
        PictureFile(split, domain, kind, instance)
        for split, counts in (("train", train), ("val", val), ("test", test))
        for domain in range(len(DOMAINS))
        for kind in range(len(KINDS))
        for instance in range(counts[domain, kind])
    ]


def _train_counts(config: BestiaryConfig) -> NDArray[np.int64]:
    """(domains, C) training images of each pair."""
    counts = longtail_counts(len(KINDS), config.n_max, config.n_min)
    allowed = domains_of_classes(
        len(KINDS),
        len(DOMAINS),
        numpy_generator(config.seed, "bestiary/domains"),
        head=config.head,
        fewest=config.fewest,
        exclusive=config.exclusive,
    )
    rng = numpy_generator(config.seed, "bestiary/counts")
    columns = [split_over_domains(int(n), allowed[:, kind], rng) for kind, n in enumerate(counts)]
    return np.stack(columns, axis=1)


def _write_semantics(folder: Path) -> None:
    """attributes.csv (class, then numbers) and descriptions.csv (class, description)."""
    table, names = attribute_table()
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in zip(NAMES, table, strict=True)]
    write_csv(folder / "attributes.csv", [["class", *names], *rows])
    write_csv(folder / "descriptions.csv", [["class", "description"], *([k.name, describe(k)] for k in KINDS)])
