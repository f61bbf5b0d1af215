"""PACS from the real tree and lists: the protocol's counts, and test lists that say what they hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.data.build.plan import Plan
from ltds.data.datasets import lists, pacs, pacs_odg
from ltds.data.datasets.list_files import ListsConfig
from ltds.data.datasets.pacs import CLASSES, PacsConfig, PacsLtConfig
from ltds.data.datasets.pacs_odg import ORDERS, PacsOdgConfig
from ltds.data.decode import decode
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.reporting.paper.matching import paper_table

SHARED = Path(__file__).resolve().parents[4].parent / "shared"
LETTERS = {"A": "art_painting", "C": "cartoon", "P": "photo", "S": "sketch"}
SIZES = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}


@pytest.fixture(scope="module")
def source() -> Path:
    path = SHARED / "data" / "pacs96"
    if not path.is_dir():
        pytest.skip("needs pacs96 from the folder 'shared' beside the repository")
    return path


def odg(out: Path, source: Path, order: str, **settings: object) -> Manifest:
    config = parse(PacsOdgConfig, {"order": order, "damaged": "unchecked", **settings})
    return pacs_odg.build(out, source, config, splits=source / "splits")


@pytest.mark.parametrize("order", list(ORDERS))
def test_the_protocols_counts(source: Path, tmp_path: Path, order: str) -> None:
    made = odg(tmp_path / "odg", source, order)
    examples = json.loads((SHARED / "fixtures" / "worked_examples.json").read_text())["examples"]
    wanted = examples["pacs_odg_train_counts"]["expected"][order]
    assert [LETTERS[letter] for letter in order.replace("-", "")] == list(made.domains)
    train = made.counts("train")
    for letter, counts in wanted.items():
        row = train[made.domains.index(LETTERS[letter])]
        assert {str(c): int(n) for c, n in enumerate(row) if n} == counts
    target = made.domains[-1]
    assert train[-1].sum() == made.counts("val")[-1].sum() == 0
    assert dict(zip(made.domains, made.counts("test").sum(axis=1).tolist(), strict=True)) == SIZES
    task = made.task(target)
    assert [made.classes[c] for c in task.open_classes] == ["person"]
    assert ((made.counts("val") > 0) == (train > 0)).all()
    assert made.provenance["facts"]["held_out"] == target
    assert Manifest.read(made.root).checksum == made.checksum


def test_training_images_in_the_test_lists_are_counted(source: Path, tmp_path: Path) -> None:
    made = odg(tmp_path / "all", source, "CPS-A")
    assert made.test_repeats
    assert made.test_images_also_in("train").tolist() == [882, 512, 1413, 0]
    assert made.test_images_also_in("val").tolist() == [99, 58, 160, 0]
    assert "with its training and validation images" in made.provenance["facts"]["test_images"]
    assert made.task("art_painting").trained_in_test == 882 + 512 + 1413
    fair = odg(tmp_path / "val", source, "CPS-A", source_test="val")
    assert (made.name, fair.name) == ("pacs-odg-cps-a", "pacs-odg-cps-a-source-test-val")
    assert (paper_table(made.name), paper_table(fair.name)) == ("S5", None)  # the paper tests on the whole lists
    assert fair.task("art_painting").trained_in_test == 0
    assert fair.test_images_also_in("train").tolist() == [0, 0, 0, 0]
    assert fair.test_images_also_in("val").tolist() == [99, 58, 160, 0]
    assert fair.counts("test").sum(axis=1).tolist() == [237, 171, 398, 2048]
    assert (fair.counts("train") == made.counts("train")).all()


def test_other_class_sets(source: Path, tmp_path: Path) -> None:
    made = odg(tmp_path / "odg", source, "PAC-S", class_sets=[["person"], ["person", "dog"], ["dog"]])
    assert made.counts("train").tolist() == [[0] * 6 + [388], [341, 0, 0, 0, 0, 0, 404], [350, *[0] * 6], [0] * 7]
    assert re.fullmatch(r"pacs-odg-pac-s-class-sets-[0-9a-f]{6}", made.name)
    with pytest.raises(ConfigError, match="'class_sets' was"):
        odg(tmp_path / "x", source, "PAC-S", class_sets=[["cat"], ["dog"], ["dog"]])


def test_plain_pacs(source: Path, tmp_path: Path) -> None:
    made = pacs.build(tmp_path / "pacs", source, PacsConfig(damaged="unchecked"), splits=source / "splits")
    sizes = {d: made.counts(s).sum(axis=1).tolist() for d, s in zip("abc", ("train", "val", "test"), strict=True)}
    assert made.domains == ("photo", "art_painting", "cartoon", "sketch")
    assert sizes == {"a": [1499, 1840, 2107, 3531], "b": [171, 208, 237, 398], "c": [1670, 2048, 2344, 3929]}
    assert made.test_images_also_in("train").tolist() == sizes["a"]
    assert made.task("sketch").open_classes == ()
    assert decode(made.root / made.paths[0], None).shape == (96, 96, 3)


def test_pacs_lt_has_the_ratio_in_every_domain(source: Path, tmp_path: Path) -> None:
    config = PacsLtConfig(ratio=50.0, damaged="unchecked")
    made = pacs.build_long_tailed(tmp_path / "lt", source, config, splits=source / "splits")
    # Classes by their training images over all domains: dog, elephant, giraffe, horse, person, guitar, house.
    order = [CLASSES.index(c) for c in ("dog", "elephant", "giraffe", "horse", "person", "guitar", "house")]
    train = made.counts("train")[:, order]
    assert train[:, 0].tolist() == [170, 341, 350, 694]
    assert train[:, -1].tolist() == [3, 7, 7, 14]
    assert (train[:, :-1] >= train[:, 1:]).all()
    assert made.counts("val").sum() == 1014
    assert made.provenance["notes"] == [
        "ratio of 50, as nearly as whole numbers allow: photo 56.7 (170 to 3 images), "
        "art_painting 48.7 (341 to 7 images), cartoon 50.0 (350 to 7 images), sketch 49.6 (694 to 14 images)"
    ]
    flat = pacs.build_long_tailed(
        tmp_path / "flat", source, PacsLtConfig(ratio=1.0, damaged="unchecked"), splits=source / "splits"
    )
    assert [set(row.tolist()) for row in flat.counts("train")] == [{163}, {165}, {121}, {71}]


def test_pacs_lt_draws_without_the_damaged_images(source: Path) -> None:
    """At the longest tail photo has one house to train on: it must not be one that cannot be decoded."""
    found, config = pacs.read_lists(source / "splits"), PacsLtConfig(ratio=170.0)

    def drawn(plan: Plan) -> list[str]:
        """The training images of houses in photographs."""
        rows = zip(plan.paths, plan.labels, plan.domain_ids, plan.split_ids, strict=True)
        return [
            p for p, label, domain, split in rows if (CLASSES[label], domain, SPLITS[split]) == ("house", 0, "train")
        ]

    (first,) = drawn(pacs.plan_pacs_lt(found, config))
    damaged = first.removeprefix("source/")
    assert damaged in found.images["photo"]["train"]
    (other,) = drawn(pacs.plan_pacs_lt(found, config, {damaged}))
    assert other != first


def test_a_ratio_out_of_reach_is_refused(source: Path, tmp_path: Path) -> None:
    for ratio in (2000.0, 171.0):
        with pytest.raises(
            DataError,
            match=rf"'ratio' to be at most 170, .* 'photo' allows, but got {ratio:g}\. Lower",
        ):
            pacs.build_long_tailed(tmp_path / "lt", source, PacsLtConfig(ratio=ratio), splits=source / "splits")
    config = PacsLtConfig(ratio=170.0, damaged="unchecked")
    made = pacs.build_long_tailed(tmp_path / "lt", source, config, splits=source / "splits")
    assert made.counts("train")[0].max() == 170
    assert made.counts("train")[0].min() == 1


def test_the_whole_lists_as_lists_of_ones_own(source: Path, tmp_path: Path) -> None:
    """The command in docs/own-data.md."""
    files = sorted((source / "splits").glob("*_test_kfold.txt"))
    config = ListsConfig(pattern="{domain}_test_kfold.txt", damaged="unchecked")
    made = lists.build(tmp_path / "own", source / "PACS", files, config)
    assert made.domains == ("art_painting", "cartoon", "photo", "sketch")
    assert sum(made.counts(split).sum(axis=1) for split in SPLITS).tolist() == [SIZES[d] for d in made.domains]


def test_what_is_missing_is_named(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no 'photo', 'art_painting', 'cartoon', 'sketch'.*Looked in.*Download PACS"):
        odg(tmp_path / "x", tmp_path, "CPS-A")
    with pytest.raises(DataError, match=r"argument 'splits' .*the official lists, but got no 'photo_train_kfold\.txt'"):
        pacs.build(tmp_path / "x", source, PacsConfig(), splits=tmp_path)
    folder = tmp_path / "lists"
    folder.mkdir()
    for file in (source / "splits").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    file = folder / "photo_test_kfold.txt"
    file.write_text(file.read_text().split("\n", 1)[1])
    with pytest.raises(DataError, match=r"test list of 'photo' to be its train and crossval .* 1499 \+ 171 and 1669"):
        pacs.build(tmp_path / "x", source, PacsConfig(), splits=folder)
    file.write_text("photo/dog/056_0001.jpg 2\n")
    with pytest.raises(DataError, match=r"with the label 1..7 of its class, but got 'photo/dog/056_0001.jpg 2'"):
        pacs.build(tmp_path / "x", source, PacsConfig(), splits=folder)
    assert not (tmp_path / "x").exists()
