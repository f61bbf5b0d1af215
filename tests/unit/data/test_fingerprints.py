"""Fingerprints of training images are those of the files, and are computed once as long as these stay as they are."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from ltds.core.files import DiskFullError
from ltds.data import fingerprints as fingerprints_module
from ltds.data.content import fingerprint
from ltds.data.fingerprints import fingerprints_of
from ltds.data.manifest import Manifest

Dataset = Callable[..., Manifest]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The image files that are read, by their path in the manifest."""
    files: list[str] = []

    def counted(file: os.PathLike[str]) -> int:
        number = fingerprint(file)
        files.append(os.fspath(file))
        return number

    monkeypatch.setattr(fingerprints_module, "fingerprint", counted)
    return files


def sources(manifest: Manifest) -> NDArray[np.int64]:
    """Training and validation rows of two of three domains, in no special order."""
    return np.concatenate([manifest.rows(split, domain) for split in ("val", "train") for domain in ("paint", "photo")])


def direct(manifest: Manifest, rows: NDArray[np.int64]) -> list[int]:
    return [fingerprint(manifest.root / manifest.paths[row]) for row in rows]


def stored(manifest: Manifest) -> list[str]:
    return sorted(file.name for file in manifest.root.glob(".cache/*"))


def test_they_are_those_of_the_files_and_each_is_read_once(dataset: Dataset, read: list[str]) -> None:
    manifest = dataset()
    rows, others = sources(manifest), manifest.rows("train", "sketch")
    assert fingerprints_of(manifest, rows).tolist() == direct(manifest, rows)
    learned = len(manifest.rows("train")) + len(manifest.rows("val"))
    assert len(read) == len(set(read)) == learned < len(manifest)
    assert fingerprints_of(manifest, others).tolist() == direct(manifest, others), "a run with another held-out domain"
    assert len(read) == learned
    assert len(stored(manifest)) == 1, "nothing temporary is left"


def test_changed_files_are_noticed(dataset: Dataset, read: list[str]) -> None:
    manifest = dataset()
    rows = sources(manifest)
    before, name = fingerprints_of(manifest, rows), stored(manifest)
    file = manifest.root / manifest.paths[rows[3]]
    Image.new("RGB", (30, 30), (1, 2, 3)).save(file)
    after = fingerprints_of(manifest, rows)
    assert np.flatnonzero(after != before).tolist() == [3]
    assert after[3] == fingerprint(file)
    assert len(read) == 2 * len(set(read))
    assert len(stored(manifest)) == 1
    assert stored(manifest) != name, "what was stored for the former images is removed"


@pytest.mark.parametrize("damage", [b"", b"no array"])
def test_a_damaged_file_is_written_again(dataset: Dataset, read: list[str], damage: bytes) -> None:
    manifest = dataset(per_pair=1)
    rows = sources(manifest)
    before = fingerprints_of(manifest, rows)
    (name,) = stored(manifest)
    whole = (manifest.root / ".cache" / name).read_bytes()
    (manifest.root / ".cache" / name).write_bytes(damage)
    assert fingerprints_of(manifest, rows).tolist() == before.tolist()
    assert (manifest.root / ".cache" / name).read_bytes() == whole


def test_another_shape_or_type_is_not_believed(dataset: Dataset) -> None:
    manifest = dataset(per_pair=1)
    rows = sources(manifest)
    before = fingerprints_of(manifest, rows).tolist()
    (name,) = stored(manifest)
    for wrong in (np.zeros(len(manifest) + 1, np.uint64), np.zeros(len(manifest), np.int64)):
        np.save(manifest.root / ".cache" / name, wrong)
        assert fingerprints_of(manifest, rows).tolist() == before


def test_where_nothing_can_be_stored_they_are_computed(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = dataset(per_pair=1)
    rows = sources(manifest)
    (manifest.root / ".cache").write_text("a file, so that no folder can be made")
    assert fingerprints_of(manifest, rows).tolist() == direct(manifest, rows)
    (manifest.root / ".cache").unlink()

    def full(file: object) -> None:
        raise DiskFullError("no room")

    monkeypatch.setattr(fingerprints_module, "atomic", full)
    assert fingerprints_of(manifest, rows).tolist() == direct(manifest, rows)
    assert stored(manifest) == []


def test_only_files_that_are_asked_for_must_be_there(dataset: Dataset) -> None:
    manifest = dataset(per_pair=1)
    rows = sources(manifest)
    (manifest.root / manifest.paths[manifest.rows("train", "sketch")[0]]).unlink()
    assert fingerprints_of(manifest, rows).tolist() == direct(manifest, rows)
    assert stored(manifest) == []
    with pytest.raises(OSError, match="No such file"):
        fingerprints_of(manifest, manifest.rows("train"))
