"""Folders and lists of one's own: what folders and columns mean, and splits that lose no rare class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.data.builders import folder, lists
from ltds.data.builders.folder import FolderConfig
from ltds.data.builders.lists import ListsConfig
from ltds.data.builders.source import digests
from ltds.data.manifest import SPLITS, Manifest
from ltds.data.stratify import draw_splits, shares

COUNTS = {"north": {"cat": 20, "dog": 5, "elk": 1}, "south": {"cat": 10, "dog": 2}}


def write_image(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 6), "teal").save(file)


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    root = tmp_path / "wards"
    for domain, classes in COUNTS.items():
        for name, count in classes.items():
            for i in range(count):
                write_image(root / domain / name / f"{i:03d}.png")
    (root / "README.txt").write_text("not an image")
    (root / "north" / "cat" / "Thumbs.db").write_text("nor this")
    return root


def table(manifest: Manifest) -> dict[tuple[str, str], tuple[int, ...]]:
    """(train, val, test) of each pair that has images."""
    counts = np.stack([manifest.counts(split) for split in SPLITS])
    return {
        (domain, name): tuple(counts[:, d, c].tolist())
        for d, domain in enumerate(manifest.domains)
        for c, name in enumerate(manifest.classes)
        if counts[:, d, c].any()
    }


def test_a_folder_is_split_in_every_pair(wards: Path, tmp_path: Path) -> None:
    made = folder.build(tmp_path / "d", wards, FolderConfig())
    assert (made.name, made.classes, made.domains) == ("wards", ("cat", "dog", "elk"), ("north", "south"))
    assert table(made) == {
        ("north", "cat"): (14, 2, 4),
        ("north", "dog"): (3, 1, 1),
        ("north", "elk"): (1, 0, 0),
        ("south", "cat"): (7, 1, 2),
        ("south", "dog"): (1, 0, 1),
    }
    assert all((made.root / path).is_file() for path in made.paths)
    again = folder.build(tmp_path / "e", wards, FolderConfig())
    other = folder.build(tmp_path / "f", wards, FolderConfig(seed=1))
    assert made.checksum == again.checksum != other.checksum


def test_given_splits_and_one_domain(wards: Path, tmp_path: Path) -> None:
    sorted_ = tmp_path / "sorted"
    for split in ("training", "valid", "test"):
        for name in ("cat", "dog"):
            write_image(sorted_ / split / name / f"{split}.png")
    made = folder.build(tmp_path / "d", sorted_, FolderConfig(layout="split/class"))
    assert table(made) == {("all", "cat"): (1, 1, 1), ("all", "dog"): (1, 1, 1)}
    with pytest.raises(ConfigError, match="free of draws, as folders give the splits, but got val"):
        folder.build(tmp_path / "e", sorted_, FolderConfig(layout="split/class", val=0.2))
    with pytest.raises(DataError, match="Expected the name of a split, but got 'north'"):
        folder.build(tmp_path / "e", wards, FolderConfig(layout="split/class"))


@pytest.mark.parametrize("layout", ["domain", "class/kind", "class/class", ""])
def test_a_layout_must_be_readable(layout: str) -> None:
    with pytest.raises(ConfigError, match="layout"):
        parse(FolderConfig, {"layout": layout})


def test_a_folder_without_images_at_that_depth(wards: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no image at that depth"):
        folder.build(tmp_path / "d", wards, FolderConfig(layout="class"))
    with pytest.raises(DataError, match="there is no such folder"):
        folder.build(tmp_path / "d", tmp_path / "gone", FolderConfig())
    with pytest.raises(ConfigError, match="less than 1 together"):
        parse(FolderConfig, {"val": 0.5, "test": 0.5})


def test_lists_of_lines(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "images.txt"
    rows = [(f"{d}/{c}/{i:03d}.png", c, d) for d, cs in COUNTS.items() for c, n in cs.items() for i in range(n)]
    file.write_text("".join(f"{path} {name} {domain}\n" for path, name, domain in rows))
    made = lists.build(tmp_path / "d", wards, [file], ListsConfig(), name="mine")
    assert table(made) == table(folder.build(tmp_path / "e", wards, FolderConfig()))
    assert made.name == "mine"
    numbered = tmp_path / "numbered.txt"
    numbered.write_text("".join(f"{path} {['cat', 'dog', 'elk'].index(name)}\n" for path, name, _ in rows))
    names = tmp_path / "classes.txt"
    names.write_text("feline\ncanine\nelk\n")
    made = lists.build(tmp_path / "f", wards, [numbered], ListsConfig(), classes=names)
    assert (made.classes, made.domains) == (("feline", "canine", "elk"), ("all",))
    assert (made.counts("train") + made.counts("val") + made.counts("test")).tolist() == [[30, 7, 1]]
    names.write_text("feline\ncanine\n")
    with pytest.raises(DataError, match=r"numbers from 0 to 1, .* but got 2"):
        lists.build(tmp_path / "g", wards, [numbered], ListsConfig(), classes=names)


def test_file_names_tell_domain_and_split(wards: Path, tmp_path: Path) -> None:
    for domain in COUNTS:
        for split, i in (("train", 0), ("crossval", 1), ("test", 2)):
            (tmp_path / f"{domain}_{split}_kfold.txt").write_text(f"{domain}/cat/{i:03d}.png 1\n")
    files = sorted(tmp_path.glob("*_kfold.txt"))
    made = lists.build(tmp_path / "d", wards, files, ListsConfig(names="{domain}_{split}_kfold.txt"))
    assert table(made) == {("north", "1"): (1, 1, 1), ("south", "1"): (1, 1, 1)}
    with pytest.raises(DataError, match=r"called as in '\{split\}-\{domain\}\.txt'"):
        lists.build(tmp_path / "e", wards, files, ListsConfig(names="{split}-{domain}.txt"))


def test_csv_columns_by_name(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "scans.csv"
    lines = [
        "file,diagnosis,hospital,fold",
        f"{wards}/north/cat/000.png,ill,N,train",  # a whole path
        "north/dog/000.png,well,N,train",
        "south/cat/001.png,ill,S,val",
        "south/dog/001.png,well,S,test",
    ]
    file.write_text("\n".join(lines) + "\n")
    columns = {"path": "file", "label": "diagnosis", "domain": "hospital", "split": "fold"}
    made = lists.build(tmp_path / "d", wards, [file], parse(ListsConfig, columns))
    assert table(made) == {
        ("N", "ill"): (1, 0, 0),
        ("N", "well"): (1, 0, 0),
        ("S", "ill"): (0, 1, 0),
        ("S", "well"): (0, 0, 1),
    }
    assert made.paths[0] == "source/north/cat/000.png"
    with pytest.raises(DataError, match=r"a column 'path', but got file, diagnosis, hospital, fold"):
        lists.build(tmp_path / "e", wards, [file], ListsConfig())
    file.write_text("\n".join([*lines, "north/cat/003.png,,N,train"]))
    with pytest.raises(DataError, match=r"line 6 of .* complete, but got an empty cell"):
        lists.build(tmp_path / "e", wards, [file], parse(ListsConfig, columns))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("north/cat/000.png cat\nnorth/cat/001.png\n", "line 2 of .* like the first, but got 'north/cat/001.png'"),
        ("north/cat/000.png cat\nnorth/cat/gone.png cat\n", "nothing at 1 of them: 'north/cat/gone.png'"),
        ("north/cat/000.png cat\nnorth/cat/000.png cat\n", "are the same file"),
        ("", "a line for each image"),
    ],
)
def test_wrong_lists(wards: Path, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "images.txt"
    file.write_text(text)
    with pytest.raises(DataError, match=said):
        lists.build(tmp_path / "d", wards, [file], ListsConfig())
    assert not (tmp_path / "d").exists()


@given(st.integers(0, 200), st.floats(0.01, 0.49), st.floats(0.01, 0.49))
def test_no_split_is_empty_that_need_not_be(count: int, val: float, test: float) -> None:
    validated, tested = shares(count, val, test)
    train = count - validated - tested
    assert (train > 0) == (count > 0)
    assert (tested > 0) == (count > 1)
    assert (validated > 0) == (count > 2)


def test_draws_of_a_pair_are_its_own() -> None:
    labels, domains = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    before = draw_splits(labels, domains, val=0.2, test=0.3, seed=0)
    after = draw_splits(np.append(labels, [2] * 9), np.append(domains, [1] * 9), val=0.2, test=0.3, seed=0)
    assert (after[:40] == before).all()
    assert np.bincount(before).tolist() == [20, 8, 12]
    assert shares(10, 0.0, 0.2) == (0, 2)
    assert shares(10, 0.2, 0.0) == (2, 0)


def test_files_of_one_name_both_count(tmp_path: Path) -> None:
    for place, text in (("a", "1"), ("b", "2"), ("c", "1")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "train.txt").write_text(text)
    files = [tmp_path / place / "train.txt" for place in "abc"]
    found = digests(files)
    assert list(found) == ["train.txt", "train.txt (2)", "train.txt (3)"]
    assert found["train.txt"] == found["train.txt (3)"] != found["train.txt (2)"]
    assert digests([tmp_path / "gone.txt"]) == {}
