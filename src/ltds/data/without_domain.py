"""A dataset without one of its domains, and without its test split: to choose settings for a domain that is unseen.

Validation images come from domains that were trained on. They rank methods otherwise than a new domain does.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.files import atomic_folder
from ltds.core.progress import SILENT, Progress
from ltds.core.symbolic_links import make_link, require_links
from ltds.data.datasets.opening import open_dataset
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

SEMANTICS = "semantics"


def without_domain(
    data: str | Path | Manifest, domain: str, *, out: str | Path, progress: Progress = SILENT
) -> Manifest:
    """A dataset on which to choose settings for a domain before you test there: without it, and without the test split.

        ltds.without_domain("data/photos", "night", out="data/without-night")

    Hold out each of its domains in turn. A domain is then tested on its training and validation images, which no step
    of that run has seen. The images stay where they are: the new folder has links to them. Class embeddings are copied.

    Args:
        data: A dataset, its folder, or "bestiary", the built-in one. Three domains or more have training images.
        domain: The domain that the settings are for.
        out: A new folder.
        progress: Shows how far building "bestiary" is: `ltds.Bars()`, or nothing by default.
    """
    manifest, folder = open_dataset(data, progress), Path(out)
    smaller = _smaller(manifest, domain)
    if os.path.lexists(folder):
        raise DataError(expected(f"argument 'out' ('{folder}')", "a new folder", "one that exists", "Name another."))
    linked = _linked_names(smaller)
    if linked:
        require_links(folder)
    with atomic_folder(folder) as unfinished:
        for name in linked:
            make_link(unfinished / name, (manifest.root / name).resolve())
        _copy_embeddings(manifest.root / SEMANTICS, unfinished / SEMANTICS)
        replace(smaller, root=unfinished).write()
    return Manifest.read(folder)


def _smaller(manifest: Manifest, domain: str) -> Manifest:
    """Training and validation images of the other domains that train, and the classes that these train on."""
    left_out = manifest.domain_index(domain)
    images = manifest.counts("train").sum(axis=1)
    images[left_out] = 0
    domains = np.flatnonzero(images)
    if len(domains) < 2:
        rule = "two or more: one to hold out, one to train on"
        got = ", ".join(manifest.domains[d] for d in domains) or "none"
        remedy = "With fewer domains, choose settings on validation images."
        thing = f"the domains of '{manifest.name}' with training images, besides '{manifest.domains[left_out]}',"
        raise DataError(expected(thing, rule, got, remedy))
    kept = np.isin(manifest.domain_ids, domains) & (manifest.split_ids != SPLITS.index("test"))
    classes = np.unique(manifest.labels[kept & (manifest.split_ids == SPLITS.index("train"))])
    kept &= np.isin(manifest.labels, classes)
    of_whole = {name: what for name, what in manifest.provenance.items() if name != "facts"}  # which count its images
    note = f"without the domain '{manifest.domains[left_out]}' and without the test split: to choose settings for it"
    return manifest.with_rows(
        kept,
        provenance={**of_whole, "notes": [*manifest.provenance.get("notes", ()), note]},
        test_repeats=False,
        whole_held_out=True,
    )


def _linked_names(manifest: Manifest) -> list[str]:
    """The names in its folder below which the images of a dataset lie. Absolute paths need no link."""
    paths = [posixpath.normpath(path) for path in manifest.paths if not os.path.isabs(path)]
    names = sorted({path.split("/", 1)[0] for path in paths})
    if ".." in names:
        rule, remedy = "below its folder", "Link the images into that folder."
        raise DataError(expected(f"the paths of '{manifest.root}'", rule, "one with '../'", remedy))
    return names


def _copy_embeddings(source: Path, folder: Path) -> None:
    """The files of class embeddings; a link would lead new ones into the folder of the whole dataset."""
    files = [file for file in source.iterdir() if file.is_file()] if source.is_dir() else []
    if files and not folder.exists():  # images may lie in a folder of this name, which is linked then
        folder.mkdir()
        for file in files:
            shutil.copyfile(file, folder / file.name)
