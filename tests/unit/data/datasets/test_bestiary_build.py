"""Building: counts, splits and files obey the rules; a build is free to repeat and never mixes datasets."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from ltds.bestiary import DOMAINS, KINDS, NAMES, Variety, attribute_table, render
from ltds.core.errors import DataError
from ltds.core.progress import Advance
from ltds.data.build.longtail import longtail_counts
from ltds.data.datasets.bestiary import BestiaryConfig, build, list_pictures
from ltds.data.manifest import Manifest

TINY = BestiaryConfig(size=16, n_max=6, n_min=1, val_per_pair=1, test_per_pair=1)


class Counting:
    """Progress that remembers its total, what was done before, and what was done."""

    def __init__(self) -> None:
        self.total, self.before, self.done = 0, 0, 0

    @contextmanager
    def track(self, title: str, total: int, done: int = 0) -> Iterator[Advance]:
        self.total, self.before = total, done

        def advance(amount: int = 1, note: str = "") -> None:
            self.done += amount

        yield advance


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return build(tmp_path_factory.mktemp("bestiary") / "tiny", TINY, workers=1)


def _counts(config: BestiaryConfig, split: str) -> np.ndarray:
    table = np.zeros((5, 50), np.int64)
    for image in list_pictures(config):
        table[image.domain, image.kind] += image.split == split
    return table


def test_training_is_long_tailed_and_each_domain_owns_its_kinds() -> None:
    train = _counts(BestiaryConfig(), "train")
    assert train.sum(axis=0).tolist() == longtail_counts(50, 313, 4).tolist()
    assert (train[:, :10] > 0).all(), "the head lives everywhere"
    lonely = (train > 0).sum(axis=0) == 1
    owned = (train[:, lonely] > 0).sum(axis=1)
    assert owned.tolist() == [2] * 5


def test_validation_only_of_trained_pairs_and_test_of_all() -> None:
    train, val, test = (_counts(BestiaryConfig(), split) for split in ("train", "val", "test"))
    assert np.array_equal(val, np.where(train > 0, 4, 0))
    assert (test == 42).all()


def test_balanced_full_data_is_possible() -> None:
    train = _counts(BestiaryConfig(n_max=100, n_min=100, head=1.0, exclusive=0), "train")
    assert (train.sum(axis=0) == 100).all()
    assert (train > 0).all()


def test_the_seed_moves_kinds_between_domains() -> None:
    a, b = (_counts(BestiaryConfig(seed=seed), "train") for seed in (0, 1))
    assert np.array_equal(a.sum(axis=0), b.sum(axis=0))
    assert not np.array_equal(a > 0, b > 0)


def test_what_is_written(built: Manifest) -> None:
    assert (built.name, built.licence, built.classes, built.domains) == ("bestiary", "CC0-1.0", NAMES, DOMAINS)
    assert built.provenance["builder"] == "bestiary"
    assert BestiaryConfig.model_validate(built.provenance["config"]) == TINY
    assert Manifest.read(built.root).checksum == built.checksum
    assert {p.relative_to(built.root).as_posix() for p in built.root.rglob("*.png")} == set(built.paths)
    assert {p.name for p in built.root.iterdir()} == {"images", "semantics", "manifest.csv", "manifest.json"}


def test_a_file_holds_the_picture_of_its_address(built: Manifest) -> None:
    path = f"images/test/{DOMAINS[3]}/{NAMES[7]}/0000.png"
    with Image.open(built.root / path) as image:
        assert np.array_equal(np.asarray(image), render(7, 3, size=16, split="test", instance=0))
    row = built.paths.index(path)
    assert (built.labels[row], built.domain_ids[row], built.split_ids[row]) == (7, 3, 2)


def test_semantics_are_written(built: Manifest) -> None:
    with (built.root / "semantics" / "attributes.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    table, names = attribute_table()
    assert rows[0] == ["class", *names]
    assert [row[0] for row in rows[1:]] == list(NAMES)
    assert np.allclose(np.array([row[1:] for row in rows[1:]], float), table)
    with (built.root / "semantics" / "descriptions.csv").open(newline="") as file:
        described = list(csv.DictReader(file))
    assert [row["class"] for row in described] == list(NAMES)
    assert len({row["description"] for row in described}) == len(KINDS)


def test_building_again_draws_nothing(built: Manifest) -> None:
    before = {path: os.stat(built.root / path).st_mtime_ns for path in built.paths}
    progress = Counting()
    again = build(built.root, TINY, progress=progress)
    assert again.checksum == built.checksum
    assert progress.done == 0
    assert before == {path: os.stat(built.root / path).st_mtime_ns for path in built.paths}


def test_another_dataset_in_the_folder_is_refused(built: Manifest) -> None:
    with pytest.raises(DataError, match=r"but got seed=0\. Choose another folder"):
        build(built.root, TINY.model_copy(update={"seed": 1}))


def test_an_interrupted_build_goes_on(tmp_path: Path, built: Manifest) -> None:
    """Finished files are kept, a missing and a broken one are drawn again, an unfinished one is swept up."""
    out = tmp_path / "tiny"
    build(out, TINY, workers=1)
    (out / "manifest.json").rename(tmp_path / "manifest.json")
    (out / "manifest.csv").unlink()
    with pytest.raises(DataError, match="images of unknown origin"):
        build(out, TINY, workers=1)
    (out / "building.json").write_text(json.dumps(built.provenance))
    missing, broken, kept = (out / built.paths[i] for i in (0, 5, 9))
    missing.unlink()
    broken.write_bytes(broken.read_bytes()[:40])
    (missing.parent / ".0000.png.1.part").write_bytes(b"half")
    time = kept.stat().st_mtime_ns
    with pytest.raises(DataError, match="Choose another folder"):
        build(out, TINY.model_copy(update={"n_max": 7}), workers=1)
    progress = Counting()
    manifest = build(out, TINY, workers=1, progress=progress)
    assert (progress.total, progress.before, progress.done) == (len(built), len(built) - 2, 2)
    assert manifest.checksum == built.checksum
    assert kept.stat().st_mtime_ns == time
    assert not list(out.rglob(".*"))
    for path in (missing, broken):
        assert path.read_bytes() == (built.root / path.relative_to(out)).read_bytes()


def test_two_processes_write_the_same_files(tmp_path: Path, built: Manifest) -> None:
    out, progress = tmp_path / "tiny", Counting()
    manifest = build(out, TINY, workers=2, progress=progress)
    assert progress.done == progress.total == len(manifest)
    assert all((out / path).read_bytes() == (built.root / path).read_bytes() for path in built.paths)


@pytest.mark.parametrize("wrong", [{"size": 8}, {"size": 300}, {"n_min": 400}, {"fewest": 6}, {"colour": 1}])
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        BestiaryConfig(**wrong)


def test_variety_is_strict_and_frozen() -> None:
    with pytest.raises(ValidationError):
        Variety(pose=2.0)
    with pytest.raises(ValidationError):
        Variety(noise=0.1)  # type: ignore[call-arg]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is no syncfs")
def test_no_other_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: waited.append("for all disks"))  # also a share whose server is gone
    assert len(build(tmp_path / "b", TINY, workers=1))
    assert waited == []
