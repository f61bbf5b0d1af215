"""Folders and lists of one's own: what folders and columns mean, and splits that lose no rare class."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.core.symbolic_links import NoLinksError
from ltds.data.build import images
from ltds.data.build.source import digests
from ltds.data.build.stratify import draw_splits, split_counts
from ltds.data.datasets import folder, lists
from ltds.data.datasets.by_name import build_data
from ltds.data.datasets.folder import FolderConfig
from ltds.data.datasets.list_files import ListsConfig
from ltds.data.decode import decoded
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from other_disks import no_links

READ = ("path", "class", "domain", "split", "group")
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
    with pytest.raises(
        ConfigError, match="no settings for random splits, because the folders give the splits, but got val"
    ):
        folder.build(tmp_path / "e", sorted_, FolderConfig(layout="split/class", val=0.2))
    with pytest.raises(DataError, match="Expected the name of a split, but got 'north'"):
        folder.build(tmp_path / "e", wards, FolderConfig(layout="split/class"))


@pytest.mark.parametrize("layout", ["domain", "class/kind", "class/class", ""])
def test_a_layout_must_be_readable(layout: str) -> None:
    with pytest.raises(ConfigError, match="layout"):
        parse(FolderConfig, {"layout": layout})


def test_a_folder_without_images_at_that_depth(wards: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no image at that depth; 38 images were ignored because .*: 'north/cat/"):
        folder.build(tmp_path / "d", wards, FolderConfig(layout="class"))
    with pytest.raises(DataError, match="there is no such folder"):
        folder.build(tmp_path / "d", tmp_path / "gone", FolderConfig())
    with pytest.raises(ConfigError, match="less than 1 together"):
        parse(FolderConfig, {"val": 0.5, "test": 0.5})


def test_images_elsewhere_are_told(wards: Path, tmp_path: Path) -> None:
    assert "notes" not in folder.build(tmp_path / "d", wards, FolderConfig()).provenance
    for place in ("top.png", "north/half.png", "north/cat/deep/down.png", ".hidden/cat/x.png"):
        write_image(wards / place)
    made = folder.build(tmp_path / "e", wards, FolderConfig())
    said = "3 images were ignored because not in folders domain/class: "
    assert made.provenance["notes"] == [said + "'top.png', 'north/half.png', 'north/cat/deep/down.png'"]
    assert table(made) == table(folder.build(tmp_path / "d", wards, FolderConfig()))


def test_files_that_are_no_images_are_counted(wards: Path, tmp_path: Path) -> None:
    (wards / "north/cat/video.MP4").write_bytes(b"")
    assert folder.build(tmp_path / "d", wards, FolderConfig()).provenance["notes"] == [
        "1 file of another kind was ignored: .mp4 1"
    ]
    for place in ("east/cat/1.dcm", "east/dog/2.DCM", "east/dog/IM0003", "south/elk/4.dcm", ".hidden/5.dcm"):
        (wards / place).parent.mkdir(parents=True, exist_ok=True)
        (wards / place).write_bytes(b"")
    said = "5 files of other kinds were ignored: .dcm 3, .mp4 1, without a suffix 1; no image in 'east', 'south/elk'"
    assert folder.build(tmp_path / "e", wards, FolderConfig()).provenance["notes"] == [said]


def test_folders_without_any_image_are_named(wards: Path, tmp_path: Path) -> None:
    """A class whose images were not copied must not vanish without a word; lists beside the domains are no class."""
    for place in ("north/empty class", "west/cat", "south/noted", "lists", "north/cat/deeper", ".hidden/cat"):
        (wards / place).mkdir(parents=True)
    for place in ("south/noted/why.txt", "lists/train.txt"):
        (wards / place).write_text("")
    said = "3 folders have no image: 'north/empty class', 'south/noted', 'west'"
    assert folder.build(tmp_path / "d", wards, FolderConfig()).provenance["notes"] == [said]


@pytest.mark.parametrize("way", ["folder", "lists"])
def test_damaged_images_are_left_out_before_the_draw(wards: Path, tmp_path: Path, way: str) -> None:
    def build(name: str, damaged: str) -> Manifest:
        if way == "folder":
            return folder.build(tmp_path / name, wards, parse(FolderConfig, {"damaged": damaged}))
        return lists.build(tmp_path / name, wards, [rows], parse(ListsConfig, {"damaged": damaged}))

    rows = tmp_path / "images.csv"
    every = [f"{d}/{c}/{i:03d}.png,{c},{d}" for d, cs in COUNTS.items() for c, n in cs.items() for i in range(n)]
    rows.write_text("\n".join(["path,class,domain", *every]))
    whole = build("whole", "refuse")
    trained = [p for p in whole.paths if p.startswith("source/south/dog")]  # one trains, one tests
    victim = next(p for i, p in enumerate(whole.paths) if p in trained and whole.split_ids[i] == 0)
    (whole.root / victim).write_bytes(b"broken")
    left = build("left", "leave-out")
    assert table(left)[("south", "dog")] == (1, 0, 0)  # the other one now trains
    others = [i for i, p in enumerate(whole.paths) if p not in trained]
    splits = dict(zip(left.paths, left.split_ids.tolist(), strict=True))
    assert all(splits[whole.paths[i]] == whole.split_ids[i] for i in others)  # other pairs are drawn as before
    assert list(left.provenance["left_out"]) == [victim.removeprefix("source/")]


def test_each_image_is_decoded_once(wards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(images, "decoded", lambda path, size: seen.append(path) or decoded(path, size))
    (wards / "north" / "cat" / "003.png").write_bytes(b"")
    folder.build(tmp_path / "d", wards, parse(FolderConfig, {"damaged": "leave-out"}))
    assert len(seen) == len(set(seen)) == 38


@pytest.mark.parametrize("way", ["folder", "lists"])
def test_a_class_or_domain_that_is_damaged_altogether_is_left_out(tmp_path: Path, way: str) -> None:
    source, paths = tmp_path / "p", ["north/cat/1.png", "north/dog/1.png", "north/elk/1.png", "east/cat/1.png"]
    for path in paths:
        write_image(source / path)
    (tmp_path / "list.csv").write_text(
        "\n".join(["path,class,domain", *(f"{path},{path.split('/')[1]},{path.split('/')[0]}" for path in paths)])
    )

    def build(out: Path) -> Manifest:
        if way == "folder":
            return folder.build(out, source, parse(FolderConfig, {"damaged": "leave-out"}))
        return lists.build(out, source, [tmp_path / "list.csv"], parse(ListsConfig, {"damaged": "leave-out"}))

    for path in paths[2:]:
        (source / path).write_bytes(b"")
    made = build(tmp_path / "d")
    assert (made.classes, made.domains, made.labels.tolist()) == (("cat", "dog"), ("north",), [0, 1])
    assert made.provenance["notes"] == [
        "1 class was left out because none of the images can be decoded: 'elk'",
        "1 domain was left out because none of the images can be decoded: 'east'",
    ]
    for path in paths[:2]:
        (source / path).write_bytes(b"")
    with pytest.raises(DataError, match="to be readable, but got 4 that cannot be decoded"):
        build(tmp_path / "e")


def test_names_that_are_no_utf8_are_refused_before_anything_is_written(wards: Path, tmp_path: Path) -> None:
    file = os.fsencode(wards / "north" / "cat") + b"/caf\xe9.png"
    try:
        os.rename(wards / "north" / "cat" / "000.png", file)
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    with pytest.raises(DataError, match=r"to be UTF-8, but got 1 with other bytes: 'north/cat/caf\\xe9\.png'"):
        folder.build(tmp_path / "d", wards, FolderConfig())
    assert not (tmp_path / "d").exists()


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
    made = lists.build(tmp_path / "d", wards, files, ListsConfig(pattern="{domain}_{split}_kfold.txt"))
    assert table(made) == {("north", "1"): (1, 1, 1), ("south", "1"): (1, 1, 1)}
    with pytest.raises(DataError, match=r"a name like '\{split\}-\{domain\}\.txt'"):
        lists.build(tmp_path / "e", wards, files, ListsConfig(pattern="{split}-{domain}.txt"))


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
    with pytest.raises(DataError, match=r"line 6 of .* complete, but got an empty cell under diagnosis"):
        lists.build(tmp_path / "e", wards, [file], parse(ListsConfig, columns))


def test_csv_columns_in_other_cases_and_with_blanks(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "scans.csv"
    rows = ["north/cat/000.png,cat,N,train,3", "north/cat/001.png,cat,N,test,4", "south/dog/000.png,dog,S,train,5"]
    file.write_text("\n".join(["Path, CLASS,Domain, Split,Age", *rows]))
    made = lists.build(tmp_path / "d", wards, [file], ListsConfig())
    assert table(made) == {("N", "cat"): (1, 0, 1), ("S", "dog"): (1, 0, 0)}
    (said,) = made.provenance["notes"]
    assert said == "1 column of 'scans.csv' was ignored: 'Age'; those that are read are called " + ", ".join(READ)
    by_setting = lists.build(tmp_path / "e", wards, [file], ListsConfig(label="age "))
    assert by_setting.classes == ("3", "4", "5")
    file.write_text("\n".join(["path,class,Domain,domain ,age", *rows]))
    with pytest.raises(DataError, match=r"to be one for 'domain', but got 'Domain' and 'domain '\. Rename or delete"):
        lists.build(tmp_path / "f", wards, [file], ListsConfig())
    file.write_text("\n".join(["path,class,domain,,", *rows]))  # as spreadsheets write empty columns
    assert "notes" not in lists.build(tmp_path / "g", wards, [file], ListsConfig()).provenance


def test_a_csv_line_with_too_many_cells(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "scans.csv"
    file.write_text('path,class,domain\nnorth/cat/000.png,"cat, big",north\nnorth/cat/001.png,cat,north,, \n')
    made = lists.build(tmp_path / "d", wards, [file], ListsConfig())
    assert (made.classes, made.domains) == (("cat", "cat, big"), ("north",)), "a spreadsheet writes empty cells"
    file.write_text("path,class,domain\nnorth/cat/000.png,cat,north\nnorth/cat/001.png,cat, big,north\n")
    with pytest.raises(DataError, match=r"line 3 of .* to be 3 cells, like .*, but got 4 cells\. Put double quotes"):
        lists.build(tmp_path / "e", wards, [file], ListsConfig())


def test_blanks_around_the_cells_of_a_csv_make_no_other_class(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "scans.csv"
    lines = ["north/cat/000.png,cat,N,train", "north/cat/001.png, cat ,N ,test ", "north/dog/000.png,dog, N, train"]
    file.write_text("\n".join(["path,class,domain,split", *lines]))
    made = lists.build(tmp_path / "d", wards, [file], ListsConfig())
    assert table(made) == {("N", "cat"): (1, 0, 1), ("N", "dog"): (1, 0, 0)}


def test_a_domain_is_for_every_image_or_for_none(wards: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "north.csv", tmp_path / "other.csv"
    file.write_text("path,class,domain\nnorth/cat/000.png,cat,N\nnorth/cat/001.png,cat,\n")
    with pytest.raises(DataError, match=r"line 3 of .*north.csv' to be complete, but got an empty cell under domain"):
        lists.build(tmp_path / "d", wards, [file], ListsConfig())
    made = lists.build(tmp_path / "d", wards, [file], ListsConfig(pattern="{domain}.csv"))  # the name tells it
    assert made.domains == ("north",)
    file.write_text("path,class,domain\nnorth/cat/000.png,cat,N\n")
    other.write_text("path,class\nnorth/cat/001.png,cat\n")
    with pytest.raises(DataError, match="with a domain for each image or for none, but got one for 1 of 2"):
        lists.build(tmp_path / "e", wards, [file, other], ListsConfig())


def test_whole_paths_through_links_and_from_a_relative_source(
    wards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(wards)
    (tmp_path / "disk").mkdir()
    (wards / "south").rename(tmp_path / "disk" / "south")
    (wards / "south").symlink_to(tmp_path / "disk" / "south")
    places = [wards, link, wards.parent / "." / "x" / ".." / wards.name, wards]
    names = ["north/cat/000.png", "north/cat/001.png", "north/dog/000.png", "south/dog/001.png"]
    file = tmp_path / "images.txt"
    file.write_text("".join(f"{p}/{n} {n.split('/')[1]}\n" for p, n in zip(places, names, strict=True)))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for i, source in enumerate((wards, link, Path("../wards"), Path("../link"))):
        made = lists.build(tmp_path / f"d{i}", source, [file], ListsConfig())
        assert sorted(made.paths) == sorted(f"source/{name}" for name in names)
        assert all((made.root / path).is_file() for path in made.paths)


def test_one_image_under_two_names_is_one_image(wards: Path, tmp_path: Path) -> None:
    file = tmp_path / "images.txt"
    file.write_text("north/cat/000.png cat\n./north/cat/000.png cat\n")
    with pytest.raises(DataError, match="listed once, but got"):
        lists.build(tmp_path / "d", wards, [file], ListsConfig())


@pytest.mark.parametrize("path", ["{wards}/../else/1.png", "{other}/1.png", "../other/1.png", "north/../../1.png"])
def test_a_path_outside_of_the_source_is_refused(wards: Path, tmp_path: Path, path: str) -> None:
    write_image(tmp_path / "other" / "1.png")
    wrong = path.format(wards=wards, other=tmp_path / "other")
    file = tmp_path / "images.txt"
    file.write_text(f"north/cat/000.png cat\n{wrong} cat\n")
    with pytest.raises(
        DataError, match=rf"line 2 of '{file}' to be the path of an image inside the source, but got '{wrong}'"
    ):
        lists.build(tmp_path / "d", wards, [file], ListsConfig())
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("which", ["images.txt", "images.csv", "classes.txt"])
def test_text_that_is_no_utf8(wards: Path, tmp_path: Path, which: str) -> None:
    texts = {
        "images.txt": "north/cat/000.png 0\nnorth/cat/001.png 1\n",
        "images.csv": "path,class\nnorth/cat/000.png,0\n",
        "classes.txt": "cat\ndog\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with (tmp_path / which).open("ab") as stream:
        stream.write("Käfer 1\n".encode("latin-1"))
    file = tmp_path / ("images.csv" if which == "images.csv" else "images.txt")
    said = rf"'{tmp_path / which}' to be text in UTF-8, but got the byte 0xe4 in line 3\. Save it again as UTF-8"
    with pytest.raises(DataError, match=said):
        lists.build(tmp_path / "d", wards, [file], ListsConfig(), classes=tmp_path / "classes.txt")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("north/cat/000.png cat\nnorth/cat/001.png\n", "line 2 of .* like the first, but got 'north/cat/001.png'"),
        (
            "north/cat/000.png cat\nnorth/cat/gone.png cat\n",
            "1 missing: 'north/cat/gone.png'. Correct or delete their lines. As argument 'source', name",
        ),
        ("north/cat/000.png cat\nnorth/cat/000.png cat\n", "line 2 of .* listed once, but got .* which line 1 of"),
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
    validated, tested = split_counts(count, val, test)
    train = count - validated - tested
    assert (train > 0) == (count > 0)
    assert (tested > 0) == (count > 1)
    assert (validated > 0) == (count > 2)


def test_draws_of_a_pair_are_its_own() -> None:
    classes, domains = ["cat"] * 20 + ["dog"] * 20, ["n", "s"] * 20
    before = draw_splits(classes, domains, val=0.2, test=0.3, seed=0)
    more, where = ["ant"] * 9 + ["cat"] * 7, ["n"] * 9 + ["a"] * 7  # a class and a domain that come first
    after = draw_splits([*more, *classes], [*where, *domains], val=0.2, test=0.3, seed=0)
    assert (after[16:] == before).all()
    assert np.bincount(before).tolist() == [20, 8, 12]
    assert len({tuple(before[i : i + 20 : 2]) for i in (0, 1, 20, 21)}) == 4  # each pair has a draw of its own
    assert split_counts(10, 0.0, 0.2) == (0, 2)
    assert split_counts(10, 0.2, 0.0) == (2, 0)


def test_a_dataset_with_splits_of_before_is_found_in_a_moved_folder(wards: Path, tmp_path: Path) -> None:
    made = folder.build(tmp_path / "d", wards, FolderConfig())
    before = replace(made, split_ids=np.roll(made.split_ids, 1))
    before.write()
    wards.rename(tmp_path / "moved")
    again = folder.build(tmp_path / "d", tmp_path / "moved", FolderConfig(), name="wards")
    assert again.split_ids.tolist() == before.split_ids.tolist()
    (tmp_path / "moved" / "north" / "dog").rename(tmp_path / "moved" / "north" / "fox")
    (tmp_path / "moved").rename(tmp_path / "other")
    with pytest.raises(DataError, match="other names or another number of images"):
        folder.build(tmp_path / "d", tmp_path / "other", FolderConfig(), name="wards")


def test_files_of_one_name_both_count(tmp_path: Path) -> None:
    for place, text in (("a", "1"), ("b", "2"), ("c", "1")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "train.txt").write_text(text)
    files = [tmp_path / place / "train.txt" for place in "abc"]
    found = digests(files)
    assert list(found) == ["train.txt", "train.txt (2)", "train.txt (3)"]
    assert found["train.txt"] == found["train.txt (3)"] != found["train.txt (2)"]
    assert digests([tmp_path / "gone.txt"]) == {}


def test_a_disk_without_links_is_named_before_images_are_read(
    wards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "symlink", no_links)
    monkeypatch.setattr(images, "check_images", None)
    with pytest.raises(NoLinksError, match=r"symbolic links, .* but got 'Operation not permitted'\. Choose another fo"):
        build_data("folder", out=tmp_path / "new" / "d", source=wards)
    assert [path.name for path in tmp_path.iterdir()] == ["wards"]
