"""Manifest: which images a dataset has, and the class, domain and split of each.

On disk: `manifest.csv` (path, class, domain, split; paths relative to its folder) and `manifest.json` (name, the order
of classes and domains, licence, how it was made, checksum).
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError, did_you_mean
from ltds.core.task import Task
from ltds.core.text import composed
from ltds.data.manifest_checks import bullet_list, find_problems
from ltds.data.manifest_files import read_header, read_rows, write_header, write_rows
from ltds.data.manifest_paths import require_inside
from ltds.data.splits import SPLITS


@dataclass(frozen=True, eq=False)
class Manifest:
    """Rows in four parallel columns: `paths` (relative to `root`), `labels`, `domain_ids`, `split_ids`.

    Each file has one row. Only with `test_repeats` may a test row name a file of a train or val row, for protocols that
    test on a whole domain, its training images included. With `whole_held_out` a held-out domain is tested on all of
    its images, whatever their split: nothing of it was trained on. With `evaluated_only`, which no file stores, no
    model is trained on it, so its classes need no training images.
    """

    root: Path
    name: str
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    paths: tuple[str, ...]
    labels: NDArray[np.int64]
    domain_ids: NDArray[np.int64]
    split_ids: NDArray[np.int64]
    licence: str = "unknown"
    provenance: dict[str, Any] = field(default_factory=dict)
    test_repeats: bool = False
    whole_held_out: bool = False
    evaluated_only: bool = False

    def __post_init__(self) -> None:
        problems = find_problems(self)
        if problems:
            raise DataError(bullet_list(f"The manifest '{self.name}' cannot be used", problems))

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of names and rows: it changes with any class, domain, path, label or split, and with their order."""
        digest = hashlib.sha256(json.dumps([self.classes, self.domains, self.paths]).encode())
        for column in (self.labels, self.domain_ids, self.split_ids):
            digest.update(column.astype("<i8").tobytes())
        if self.whole_held_out:  # other test images: another dataset
            digest.update(b"whole_held_out")
        return digest.hexdigest()

    def rows(self, split: str, domain: str | None = None) -> NDArray[np.int64]:
        """Row ids of a split, optionally of one domain, ascending."""
        mask = self.split_ids == SPLITS.index(split)
        if domain is not None:
            mask &= self.domain_ids == self.domain_index(domain)
        return np.flatnonzero(mask).astype(np.int64)

    def test_rows(self, held_out: str | None) -> NDArray[np.int64]:
        """Row ids to test on, ascending: the test split, and with `whole_held_out` every image of `held_out`."""
        tested = self.split_ids == SPLITS.index("test")
        if held_out is not None and self.whole_held_out:
            tested |= self.domain_ids == self.domain_index(held_out)
        return np.flatnonzero(tested).astype(np.int64)

    def with_rows(self, kept: NDArray[np.bool_], **changes: Any) -> Manifest:
        """The rows of a mask, with the classes and domains that they have, and other `changes`."""
        classes, labels = np.unique(self.labels[kept], return_inverse=True)
        domains, domain_ids = np.unique(self.domain_ids[kept], return_inverse=True)
        return replace(
            self,
            classes=tuple(self.classes[c] for c in classes),
            domains=tuple(self.domains[d] for d in domains),
            paths=tuple(path for path, keep in zip(self.paths, kept, strict=True) if keep),
            labels=labels,
            domain_ids=domain_ids,
            split_ids=self.split_ids[kept],
            **changes,
        )

    def domain_index(self, domain: str) -> int:
        own = self.own_spelling(domain)
        if own not in self.domains:
            raise DataError(
                f"Expected a domain of '{self.name}', but got '{domain}'. {did_you_mean(domain, self.domains)}"
            )
        return self.domains.index(own)

    def own_spelling(self, domain: str) -> str:
        """As this dataset spells it: accents may be encoded in two ways. Unknown names are returned unchanged."""
        same = (own for own in self.domains if composed(own) == composed(domain))
        return domain if domain in self.domains else next(same, domain)

    def counts(self, split: str) -> NDArray[np.int64]:
        """(domains, C) images of each pair in a split."""
        table = np.zeros((len(self.domains), len(self.classes)), dtype=np.int64)
        rows = self.rows(split)
        np.add.at(table, (self.domain_ids[rows], self.labels[rows]), 1)
        return table

    def test_images_also_in(self, split: str) -> NDArray[np.int64]:
        """(domains,) test images whose file is also in `split` ("train" or "val"): 0 unless `test_repeats`."""
        if not self.test_repeats:
            return np.zeros(len(self.domains), dtype=np.int64)
        files = {posixpath.normpath(self.paths[i]) for i in self.rows(split)}
        repeated = [i for i in self.rows("test") if posixpath.normpath(self.paths[i]) in files]
        return np.bincount(self.domain_ids[repeated], minlength=len(self.domains)).astype(np.int64)

    @property
    def identity(self) -> str:
        """A hash of the rows and of the settings that built the images: two sizes of one dataset are two datasets."""
        made = {name: self.provenance[name] for name in ("builder", "config", "renderer") if name in self.provenance}
        if not made:
            return self.checksum
        return hashlib.sha256(json.dumps([self.checksum, made], sort_keys=True).encode()).hexdigest()

    def task(self, held_out: str | None) -> Task:
        """The problem of training on every domain except `held_out` (None: on every domain)."""
        counts, repeats = self.counts("train"), self.test_images_also_in("train")
        if held_out is not None:
            held_out = self.own_spelling(held_out)
            counts, repeats = (np.delete(table, self.domain_index(held_out), axis=0) for table in (counts, repeats))
        if not len(counts):
            raise DataError(
                f"Expected '{self.name}' to have a domain to train on besides the held-out '{held_out}', but it is the "
                "only one. Leave data.held_out empty, or add domains."
            )
        task = Task(self.name, self.classes, self.domains, held_out, counts, int(repeats.sum()))
        empty = [d for d, n in zip(task.sources, counts.sum(axis=1), strict=True) if n == 0]
        if empty:
            raise DataError(
                f"Expected every source domain of '{self.name}' to have training images, but got none for "
                f"{', '.join(empty)}. Set data.held_out to that domain, or add images."
            )
        return task

    def write(self) -> None:
        """Write manifest.csv and then manifest.json, which makes the folder a valid dataset."""
        write_rows(self)
        write_header(self)

    @classmethod
    def read(cls, root: Path, *, evaluated_only: bool = False) -> Manifest:
        """The dataset in this folder, checked: names, splits, duplicates, paths, that both files belong together."""
        header = read_header(root)
        paths, labels, domain_ids, split_ids = read_rows(root / "manifest.csv", header)
        require_inside(root / "manifest.csv", paths)
        manifest = cls(
            root=root,
            name=header.name,
            classes=header.classes,
            domains=header.domains,
            paths=paths,
            labels=labels,
            domain_ids=domain_ids,
            split_ids=split_ids,
            licence=header.licence,
            provenance=header.provenance,
            test_repeats=header.test_repeats,
            whole_held_out=header.whole_held_out,
            evaluated_only=evaluated_only,
        )
        recorded = header.checksum
        if recorded is not None and recorded != manifest.checksum:
            raise DataError(
                f"Expected '{root / 'manifest.csv'}' to match the checksum in manifest.json ({recorded[:12]}...), but "
                f'got {manifest.checksum[:12]}.... If you edited it on purpose, delete the line "checksum" from '
                "manifest.json; otherwise build the dataset again."
            )
        return manifest
