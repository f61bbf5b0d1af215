"""AWA2-LTS (Gu et al., supplement A.1): Animals with Attributes 2, long-tailed and in five styles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from ltds.core.awa2 import numbered_names, with_unrated_as_mean
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.files import write_csv
from ltds.core.progress import SILENT, Progress
from ltds.core.text import few_quoted
from ltds.data.build.dataset import build_dataset
from ltds.data.build.plan import Plan, variant
from ltds.data.build.published import list_files, plan_published
from ltds.data.build.source import digests, find_root
from ltds.data.datasets.lts import VERSION, LtsConfig, plan_class_folders, start_plan
from ltds.data.image_files import images_in
from ltds.data.manifest import Manifest

WHERE = (
    "Download AwA2-data.zip (13 GB) from https://cvml.ista.ac.at/AwA2/, unpack it, and name the folder "
    "Animals_with_Attributes2, which contains classes.txt and JPEGImages/."
)
IMAGES, CLASSES = 37_322, 50
LICENCE = "images: as stated for each in AWA2's licences folder (Creative Commons)"


class Awa2LtsConfig(LtsConfig):
    """The paper's numbers: 1645 - 80 = 1565 training images of horses down to 100 - 80 = 20 of moles; 8,464 in all."""

    n_max: int | None = Field(default=1565, ge=1, description="training images of the most common class")
    n_min: int | None = Field(default=20, ge=1, description="training images of the rarest class")


def build(
    out: Path,
    source: Path,
    config: Awa2LtsConfig,
    *,
    lists: Path | None = None,
    progress: Progress = SILENT,
) -> Manifest:
    """AWA2-LTS from the unpacked AWA2; with `lists`, exactly the images that the authors' list files name."""
    unused = sorted(config.model_fields_set - {"damaged"})
    if lists is not None and unused:
        rule, remedy = "left out when lists decide about the images", "Leave out these settings, or the lists."
        raise ConfigError(expected("the settings", rule, ", ".join(unused), remedy))
    base = find_root(source, ("Animals_with_Attributes2", "AwA2-data/Animals_with_Attributes2", ".."), _HOLDS, WHERE)
    root = base / "JPEGImages"

    def plan(without: Collection[str]) -> Plan:
        classes = numbered_names(base / "classes.txt")
        empty = [name for name in classes if not (root / name).is_dir()]
        if empty:
            raise DataError(
                expected(f"'{root}'", "a folder of images for each class", f"no {few_quoted(empty)}", WHERE)
            )
        files = [[f"{name}/{image}" for image in images_in(root / name)] for name in classes]
        start = start_plan(_name(config, len(classes)), classes, config, WHERE)
        start.licence = LICENCE
        start.facts = {"images_of_AWA2_that_the_source_lacks": IMAGES - sum(map(len, files))}
        if lists is not None:
            return plan_published(start, files, lists)
        return plan_class_folders(start, files, config, without)

    published = {} if lists is None else {"lists": digests(list_files(lists, config.domains))}
    key = {"builder": "awa2-lts", "version": VERSION, "config": config.model_dump(mode="json"), "lists": published}

    def extras(folder: Path) -> None:
        write_attributes(base, folder / "semantics" / "attributes.csv")

    return build_dataset(out, root, key, plan, damaged=config.damaged, progress=progress, extras=extras)


_HOLDS = ("classes.txt", "JPEGImages")


def _name(config: Awa2LtsConfig, classes: int) -> str:
    """A different tail or number of classes gets a different name: it cannot be compared with the paper's numbers."""
    paper = Awa2LtsConfig()
    name = "awa2-lts" if classes == CLASSES else f"awa2-lts-{classes}-classes"
    if (config.n_max, config.n_min) != (paper.n_max, paper.n_min):
        name += f"-{config.n_max}-{config.n_min}"
    return variant(name, config, without=("n_max", "n_min"))


def write_attributes(base: Path, out: Path) -> None:
    """Write the 85 attributes as a table `class, attribute, ...`, if AWA2's files of them exist.

    Entries that nobody rated (-1) become the mean of the other classes, so that they say nothing about the class.
    """
    predicates, matrix = base / "predicates.txt", base / "predicate-matrix-continuous.txt"
    if not (predicates.is_file() and matrix.is_file()):
        return
    classes, names = numbered_names(base / "classes.txt"), numbered_names(predicates)
    values = np.loadtxt(matrix, dtype=np.float64, ndmin=2)
    if values.shape != (len(classes), len(names)):
        rule = f"a table of {len(classes)} classes and {len(names)} predicates"
        raise DataError(expected(f"'{matrix}'", rule, f"one of {values.shape}", WHERE))
    _write_table(out, names, classes, with_unrated_as_mean(values).tolist())


def _write_table(out: Path, columns: Sequence[str], classes: Sequence[str], values: Sequence[Sequence[float]]) -> None:
    rows = [[name, *(f"{value:.6g}" for value in row)] for name, row in zip(classes, values, strict=True)]
    write_csv(out, [["class", *columns], *rows])
