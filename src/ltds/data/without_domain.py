"""A dataset without one of its domains, and without test images: to choose settings for a domain that nobody has seen.

Validation images come from domains that were trained on. They rank methods otherwise than a new domain does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from ltds.core.errors import DataError, expected
from ltds.core.progress import SILENT, Progress
from ltds.data.datasets.opening import open_dataset
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS

FEWEST = 3  # domains: one is left out, one is held out, one is trained on


def without_domain(
    data: str | Path | Manifest, domain: str, *, out: str | Path, progress: Progress = SILENT
) -> Manifest:
    """A dataset on which to choose settings for a domain before you test there: neither it nor any test image is in it.

        ltds.without_domain("photos-data", "hospital_c", out="data/without-c")

    Hold out each of its domains in turn. A domain is then tested on its training and validation images, which no step
    of that run has seen. The images stay where they are: the new folder has links to them.

    Args:
        data: A dataset, its folder, or "bestiary", the built-in one. Three domains or more.
        domain: The domain that the settings are for.
        out: A new folder.
        progress: Shows how far building "bestiary" is: `ltds.Bars()`, or nothing by default.
    """
    manifest, folder = open_dataset(data, progress), Path(out)
    smaller = _smaller(manifest, domain)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        got = "a folder with files in it" if folder.is_dir() else "a file"
        raise DataError(expected(f"argument 'out' ('{folder}')", "a new folder", got, "Choose another name."))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-", suffix=".part") as temporary:
        unfinished = Path(temporary) / "dataset"
        unfinished.mkdir()
        _link_images(smaller, unfinished)
        if (manifest.root / "semantics").is_dir():  # a copy: new embeddings must not change those of the dataset
            shutil.copytree(manifest.root / "semantics", unfinished / "semantics")
        replace(smaller, root=unfinished).write()
        os.replace(unfinished, folder)
    return Manifest.read(folder)


def _smaller(manifest: Manifest, domain: str) -> Manifest:
    """The training and validation images of the other domains, and the classes that these train on."""
    left_out = manifest.domain_index(domain)
    if len(manifest.domains) < FEWEST:
        rule = f"{FEWEST} or more: one to leave out, one to hold out, one to train on"
        got, remedy = ", ".join(manifest.domains), "With fewer domains, choose settings on validation images."
        raise DataError(expected(f"the domains of '{manifest.name}'", rule, got, remedy))
    kept = (manifest.domain_ids != left_out) & (manifest.split_ids != SPLITS.index("test"))
    trained = np.unique(manifest.labels[kept & (manifest.split_ids == SPLITS.index("train"))])
    kept &= np.isin(manifest.labels, trained)
    number = np.cumsum(np.arange(len(manifest.domains)) != left_out) - 1
    of_whole = {name: what for name, what in manifest.provenance.items() if name != "facts"}  # which count its images
    note = f"without the domain '{manifest.domains[left_out]}' and without test images: to choose settings for it"
    return replace(
        manifest,
        classes=tuple(manifest.classes[c] for c in trained),
        domains=tuple(name for i, name in enumerate(manifest.domains) if i != left_out),
        paths=tuple(path for path, keep in zip(manifest.paths, kept, strict=True) if keep),
        labels=np.searchsorted(trained, manifest.labels[kept]),
        domain_ids=number[manifest.domain_ids[kept]],
        split_ids=manifest.split_ids[kept],
        provenance={**of_whole, "notes": [*manifest.provenance.get("notes", ()), note]},
        test_repeats=False,
        whole_held_out=True,
    )


def _link_images(manifest: Manifest, folder: Path) -> None:
    """Links in the folder under which every path of the dataset leads to its image. Absolute paths need none."""
    for name in sorted({path.split("/", 1)[0] for path in manifest.paths if not os.path.isabs(path)}):
        if name == "..":
            rule, remedy = "below its folder", "Link the images into that folder."
            raise DataError(expected(f"the paths of '{manifest.root}'", rule, "one with '../'", remedy))
        (folder / name).symlink_to((manifest.root / name).resolve())
