"""Somebody's folder or list of images as a dataset: what folders mean, when it is built again, and bad folders."""

from __future__ import annotations

import ntpath
import os
import pickle
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, features

from ltds.core.errors import DataError
from ltds.data import image_files
from ltds.data.build import source as build_source
from ltds.data.build.stratify import split_counts
from ltds.data.datasets import folder, lists, raw
from ltds.data.datasets.folder import make_plan
from ltds.data.datasets.layout import infer_layout
from ltds.data.datasets.opening import ImageFolderError, open_dataset, raw_images
from ltds.data.datasets.raw import dataset_name, open_or_build, open_or_preview, preview, read_folder
from ltds.data.decode import FORMATS, decode
from ltds.data.image_files import SUFFIXES, images_below
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from other_disks import no_links, stat_without_numbers


def write(root: Path, *files: str) -> Path:
    for number, file in enumerate(files):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number % 256, 40, 90)).save(root / file)
    return root


def many(domain: str, name: str, count: int) -> list[str]:
    return [f"{domain}/{name}/{i}.png" for i in range(count)]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(
        tmp_path / "photos", *many("north", "cat", 6), *many("north", "dog", 3), *many("south", "cat", 5), "top.png"
    )


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        (["a/cat/1.png", "b/cat/2.png"], "domain/class"),
        (["a/cat/2021/x/1.png", "b/cat/2022/y/2.png", "b/cat/2023/y/2.png"], "domain/class"),
        (["cat/1.png", "dog/1.png"], "class"),
        (["train/cat/1.png", "test/cat/1.png"], "split/class"),
        (["train/cat/1.png", "dev/cat/1.png", "test/cat/1.png"], "split/class"),
        (["train/cat/1.png", "eval/cat/1.png", "holdout/cat/1.png"], "split/class"),
        (["train/1.png", "bus/1.png", "tram/1.png"], "class"),  # a vehicle
        (["Train/a/cat/1.png", "valid/a/cat/1.png"], "split/domain/class"),
        (["a/train/cat/1.png", "b/test/cat/1.png"], "domain/split/class"),
        (["a/cat/train/1.png", "b/cat/test/2.png"], "domain/class/split"),
        (["a/cat/train/x/1.png", "b/cat/test/y/2.png"], "domain/class/split"),
        (["cat/train/1.png", "dog/test/2.png"], "class/split"),
        (["a/cat/train/1.png", "b/cat/left/2.png"], "domain/class"),
        ([*many("a", "cat", 3), "b/toy/train/1.png", "b/toy/bus/1.png"], "domain/class"),
        ([*many("a", "cat", 3), "b/cat/test/1.png", "b/cat/val/1.png"], "domain/class"),
        (["train/cat/1.png"], "domain/class"),  # one folder called train is no split
    ],
)
def test_what_folders_mean(tmp_path: Path, files: list[str], layout: str) -> None:
    assert infer_layout(tmp_path, files) == layout


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "but got none. Sort them into folders"),
        (["1.png", "2.png"], "2 images without a class: they lie directly in the folder. Sort them"),
        (["PACS/a/cat/1.png", "PACS/b/cat/1.png"], "one folder 'PACS' around everything. Name that one instead"),
        (["fr/s1/cat/1.png", "de/s2/cat/1.png"], "one level deeper"),
        (
            ["train/cat/1.png", "test/cat/1.png", "extra/cat/1.png"],
            "'test', 'train' next to 'extra'. If they",
        ),
        (["a/cat/train/1.png", "a/cat/val/1.png", "b/cat/old/1.png"], "'train', 'val' next to 'old'"),
        (
            [*many("a", "cat", 3), "b/cat/Train/1.png", "b/cat/test/1.png"],
            "'Train', 'test' elsewhere, such as 'b/cat/Train'. If they are splits, sort the other images",
        ),
        (["cat/1.png", "cat/2.png", "cat/3.png", "dog/train/1.png", "dog/val/1.png"], "'train', 'val' elsewhere"),
        (["a/cat/x/train/1.png", "b/cat/x/test/1.png"], "'test', 'train' elsewhere"),
    ],
)
def test_folders_that_mean_nothing(tmp_path: Path, files: list[str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        infer_layout(tmp_path / "mine", files)


def test_a_folder_is_built_once_and_again_when_images_come(photos: Path) -> None:
    made = open_or_build(photos)
    assert (made.name, made.root, made.domains, made.classes) == (
        "photos",
        Path("data/photos"),
        ("north", "south"),
        ("cat", "dog"),
    )
    assert made.provenance["notes"] == ["1 image was ignored because not in folders domain/class: 'top.png'"]
    assert (made.root / "source").resolve() == photos.resolve()
    written = os.stat("data/photos/manifest.json").st_mtime_ns
    assert open_or_build("photos").checksum == made.checksum
    assert os.stat("data/photos/manifest.json").st_mtime_ns == written
    write(photos, "south/dog/new.png", "south/dog/new2.png")
    again = open_or_build("photos")
    assert len(again) == len(made) + 2
    assert (again.name, again.root.parent) == ("photos", Path("data"))
    assert again.root != made.root
    assert open_or_build("photos").root == again.root


def test_a_folder_inside_the_data_home_keeps_its_files(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LTDS_DATA", str(photos.parent))
    made = open_or_build(photos)
    assert made.root.name.startswith("photos-")
    assert not (photos / "manifest.json").exists()
    assert dataset_name(Path("x/bestiary")) == "bestiary-images"


def test_the_current_folder_is_built_beside_itself(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos)
    made = open_or_build(".")
    assert (made.name, made.root) == ("photos", photos.parent / "data/photos")
    assert open_or_build(".").root == made.root
    assert not (photos / "data").exists()
    monkeypatch.setenv("LTDS_DATA", str(photos / "datasets"))
    with pytest.raises(DataError, match=r"LTDS_DATA to be a folder outside that of the images .* another folder"):
        open_or_build(".")


def write_dataset(root: Path) -> Path:
    files = [f"images/{domain}/{name}/{i}.png" for domain in "xy" for name in ("elk", "fox") for i in range(9)]
    write(root, *files)
    lines = [f"{file},{file.split('/')[2]},{file.split('/')[1]},train" for file in files]
    (root / "manifest.csv").write_text("\n".join(["path,class,domain,split", *lines, ""]))
    (root / "manifest.json").write_text('{"name": "o", "classes": ["elk", "fox"], "domains": ["x", "y"]}')
    return root


def test_what_is_a_folder_or_list_of_images(photos: Path) -> None:
    """The name "bestiary" is the built-in dataset, whatever lies in a folder of that name."""
    dataset = write_dataset(photos.parent / "dataset")
    Path("list.csv").write_text("path,class,domain\nphotos/top.png,cat,north\n")
    write(Path("bestiary"), *many("north", "cat", 2))
    Path("empty").mkdir()
    for source in ("photos", photos, "list.csv", "./bestiary/north"):
        assert raw_images(source) == Path(source)
    for other in (dataset, Manifest.read(dataset), "bestiary", Path("bestiary"), "empty", "nosuch"):
        assert raw_images(other) is None
    opened, previewed = open_or_preview(dataset), open_or_preview("photos")
    assert (opened.root, opened.classes) == (dataset, ("elk", "fox"))
    assert (previewed.root, previewed.classes) == (Path("photos"), ("cat", "dog"))
    assert opened.evaluated_only
    assert previewed.evaluated_only
    assert not Path("data").exists(), "nothing is built"


@pytest.mark.parametrize("where", ["other", "data/other", "north/other", "north/cat/old/other"])
def test_a_dataset_inside_the_folder_is_ignored_and_named(photos: Path, where: str) -> None:
    before = preview(photos)
    write_dataset(photos / where)
    for found in (preview(photos), open_or_build(photos)):
        assert (found.classes, found.domains) == (before.classes, before.domains)
        assert [path.removeprefix("source/") for path in found.paths] == list(before.paths)
        assert found.provenance["notes"] == [
            f"1 dataset inside the folder was ignored, with its images: '{where}'",
            "1 image was ignored because not in folders domain/class: 'top.png'",
        ]
    config = folder.FolderConfig(deep=True)
    assert len(folder.plan_folder("photos", photos, config).paths) == len(before)
    assert len(open_dataset(photos / where)) == 36, "the dataset itself can be named"


def test_a_folder_that_only_holds_datasets_is_refused_with_their_names(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data/one")
    write_dataset(tmp_path / "data/two")
    for opened in (open_dataset, open_or_build):
        with pytest.raises(
            DataError, match=r"a folder with 'one', 'two' in it\. Name the dataset itself, such as '.*one'"
        ):
            opened(tmp_path / "data")


def test_one_file_of_a_dataset_makes_none(photos: Path) -> None:
    before = len(preview(photos))
    (photos / "north/manifest.json").write_text("{}")
    (photos / "south/manifest.csv").write_text("")
    assert len(preview(photos)) == before


def test_a_held_out_domain_is_tested_on_all_of_its_images(photos: Path) -> None:
    made = open_or_build(photos)
    assert made.whole_held_out
    south = np.flatnonzero(made.domain_ids == 1)
    tested = made.test_rows("south")
    assert set(south) <= set(tested)
    assert len(tested) == 5 + len(made.rows("test", "north"))
    assert made.test_rows(None).tolist() == made.rows("test").tolist()
    read = Manifest.read(made.root)
    assert read.whole_held_out
    given = write(photos.parent / "given", "train/cat/1.png", "test/cat/1.png")
    assert not open_or_build(given).whole_held_out  # folders give the splits


def test_test_images_in_folders_inside_the_classes_are_not_trained_on(photos: Path) -> None:
    split = ("train/1.png", "train/2.png", "test/1.png")
    given = write(photos.parent / "given", *(f"{d}/{c}/{name}" for d in "AB" for c in ("cat", "dog") for name in split))
    made = open_or_build(given)
    assert [path for path in made.paths if "/test/" in path] == [made.paths[row] for row in made.rows("test")]
    assert made.counts("train").tolist() == [[2, 2], [2, 2]]
    assert made.counts("test").tolist() == [[1, 1], [1, 1]]


def test_both_ways_of_testing_on_a_whole_domain_exclude_each_other(photos: Path) -> None:
    made = open_or_build(photos)
    columns = (made.root, "x", made.classes, made.domains, made.paths, made.labels, made.domain_ids, made.split_ids)
    with pytest.raises(DataError, match="test twice"):
        Manifest(*columns, test_repeats=True, whole_held_out=True)
    plain = Manifest(*columns)
    assert plain.checksum != made.checksum
    assert plain.test_rows("south").tolist() == plain.rows("test").tolist()


def test_the_test_is_as_even_as_the_images_allow(tmp_path: Path) -> None:
    assert split_counts(1000, 0.1, 0.2, most_test=12) == (100, 12)
    assert split_counts(20, 0.1, 0.2, most_test=12) == (2, 4)
    files = [*many("a", "cat", 200), *many("a", "dog", 80), *many("a", "elk", 5)]
    manifest = preview(write(tmp_path / "photos", *files))
    assert manifest.counts("test").tolist() == [[16, 16, 1]]  # a fifth of the pair in the middle


def test_damaged_images_are_left_out_and_named(photos: Path) -> None:
    (photos / "north/cat/0.png").write_bytes(b"")
    made = open_or_build(photos)
    assert made.provenance["left_out"] == {"north/cat/0.png": "an empty file (0 bytes)"}
    assert len(made) == 13
    assert open_or_build(photos).root == made.root


def test_links_that_lead_nowhere_are_damaged_images(photos: Path) -> None:
    """git-annex and DVC leave such links where the content was not fetched."""
    link = photos / "west/cat/0.png"
    link.parent.mkdir(parents=True)
    link.symlink_to(photos / "annex")
    assert "west/cat/0.png" in preview(photos).paths
    for damaged, said in (("refuse", "a link to a file that does not exist"), ("unchecked", "1 missing: 'west/cat/0")):
        with pytest.raises(DataError, match=said):
            folder.build(photos.parent / "d", photos, folder.FolderConfig(damaged=damaged))
    made = open_or_build(photos)
    assert made.provenance["left_out"] == {"west/cat/0.png": "a link to a file that does not exist"}
    assert "1 domain was left out because none of the images can be decoded: 'west'" in made.provenance["notes"]
    Image.new("RGB", (8, 8)).save(photos / "annex", "PNG")
    assert open_or_build(photos).domains == ("north", "south", "west"), "fetched since"


def test_a_dataset_with_an_empty_domain_is_built_again(photos: Path) -> None:
    write(photos, "west/cat/0.png")
    (photos / "west/cat/0.png").write_bytes(b"")
    made = open_or_build(photos)
    assert made.domains == ("north", "south")
    replace(made, domains=("north", "south", "west")).write()  # as it was built before
    assert open_or_build(photos).domains == ("north", "south")


def test_repaired_images_are_used(photos: Path) -> None:
    damaged = [photos / "north/cat/0.png", photos / "south/cat/0.png"]
    good = [file.read_bytes() for file in damaged]
    for file in damaged:
        file.write_bytes(b"")
    listed = photos / "list.csv"
    lines = [f"{path.relative_to(photos)},{path.parts[-2]}" for path in sorted(photos.glob("*/*/*.png"))]
    listed.write_text("\n".join(["path,class", *lines]))
    sizes, roots = [], []
    for step in range(3):
        made = [open_or_build(source) for source in (photos, listed)]
        sizes.append([len(manifest) for manifest in made])
        roots.append([open_or_build(source).root for source in (photos, listed)])
        assert roots[-1] == [manifest.root for manifest in made]
        if step < 2:
            damaged[step].write_bytes(good[step])
    assert sizes == [[12, 12], [13, 13], [14, 14]]
    assert [root[0].name.count("-") for root in roots] == [0, 1, 2]  # old datasets stay as they are
    assert not made[0].provenance.get("left_out")


def test_files_of_every_format_that_is_decoded_are_found(tmp_path: Path) -> None:
    names = [f"a/cat/{kind[1:]}{kind}" for kind in (".jfif", ".JPE", ".jp2", ".j2k", ".pnm", ".pgm", ".webp", ".tiff")]
    names += ["a/cat/avif.avif"] if features.check("avif") else []
    photos = write(tmp_path / "photos", *names)
    (photos / "a/cat/heic.heic").write_bytes(b"")
    (photos / "a/cat/notes.txt").write_text("")
    assert set(preview(photos).paths) == {*names, "a/cat/heic.heic"}
    for name in names:
        assert decode(photos / name, None).shape == (8, 8, 3)
    Image.init()
    known = {suffix for suffix, kind in Image.registered_extensions().items() if kind in FORMATS}
    assert known - SUFFIXES == {".pfm"}, "32-bit floats, which are refused"


def test_links_in_a_circle_end(photos: Path) -> None:
    (photos / "north/cat/again").symlink_to(photos / "north")
    (photos / "north/dog/self").symlink_to("self")
    (photos / "north/loop").symlink_to(photos)
    found = list(images_below(photos))
    assert "north/cat/0.png" in found
    assert open_or_build(photos).classes == ("cat", "dog")
    assert read_folder(photos).config.layout == "domain/class"


def test_names_in_any_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = write(tmp_path / "фото", *many("север", "猫", 3), *many("اليمن", "ñandú o'x", 3))
    made = open_or_build(root)
    assert made.classes == ("ñandú o'x", "猫")
    assert Manifest.read(made.root).domains == ("север", "اليمن")


def test_a_name_in_two_encodings_is_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = "caf\u00e9", "cafe\u0301"  # as on Linux, and as on a Mac
    photos = write(tmp_path / "p", *many(one, one, 2), *many("b", two, 3), *many(two, "tea", 2))
    if len(os.listdir(photos)) < 3:
        pytest.skip("this file system has one encoding only")
    monkeypatch.chdir(tmp_path)
    for source in (photos, listed(photos)):
        made = open_or_build(source)
        assert (made.classes, made.domains) == ((one, "tea"), ("b", one))
        assert sum(made.counts(split) for split in SPLITS).tolist() == [[3, 0], [2, 2]]
        replace(made, classes=(one, two)).write()  # an earlier version had both
        assert open_or_build(source).classes == (one, "tea")


def test_two_images_of_each_class(tmp_path: Path) -> None:
    manifest = preview(write(tmp_path / "p", *many("a", "cat", 2), *many("b", "cat", 2), *many("a", "dog", 1)))
    assert [len(manifest.rows(split)) for split in ("train", "val", "test")] == [3, 0, 2]


def test_a_list_of_images(photos: Path) -> None:
    rows = [f"{path},{path.split('/')[1]},{path.split('/')[0]}" for path in images_below(photos) if "/" in path]
    (photos / "mine.csv").write_text("\n".join(["path,class,domain", *rows]))
    made = open_or_build(photos / "mine.csv")
    assert (made.name, len(made), made.root) == ("mine", 14, Path("data/mine"))
    assert preview(photos / "mine.csv").split_ids.tolist() == made.split_ids.tolist()
    (photos / "mine.csv").write_text("\n".join(["path,class,domain", *rows[1:]]))
    assert len(open_or_build(photos / "mine.csv")) == 13


def listed(photos: Path, name: str = "mine.csv") -> Path:
    rows = [f"{path},{path.split('/')[1]},{path.split('/')[0]}" for path in images_below(photos) if "/" in path]
    (photos / name).write_text("\n".join(["path,class,domain", *rows]))
    return photos / name


def test_a_list_in_the_current_folder(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed(photos)
    monkeypatch.chdir(photos)
    made = open_or_build("mine.csv")
    assert (len(made), made.root) == (14, Path("data/mine"))
    assert open_or_build("mine.csv").root == made.root


def test_a_list_of_images_elsewhere_gets_advice_that_works(photos: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "lists" / "mine.csv"
    elsewhere.parent.mkdir()
    file = listed(photos)
    head, *rows = file.read_text().splitlines()
    for prefix, part in (
        ("../photos/", "inside the source, but got '../photos/"),
        ("", "Correct or delete their lines"),
    ):
        elsewhere.write_text("\n".join([head, *(prefix + row for row in rows)]))
        with pytest.raises(DataError, match=rf"{part}.* put the list into the folder that holds all of them") as error:
            open_or_build(elsewhere)
        assert "'ltds data build lists' takes that folder as argument 'source'" in str(error.value)
    assert len(lists.build(tmp_path / "built", photos, [elsewhere], lists.ListsConfig())) == 14
    assert len(open_or_build(file)) == 14


def test_a_dataset_of_a_list_with_other_settings_is_left_alone(photos: Path) -> None:
    file = listed(photos)
    built = lists.build(Path("data/mine"), photos, [file], lists.ListsConfig())
    made = open_or_build(file)
    assert made.root != built.root
    assert open_or_build(file).root == made.root


def test_a_dataset_for_which_a_column_was_not_read_is_not_used(photos: Path) -> None:
    file = listed(photos)
    file.write_text(file.read_text().replace("domain", "Domain", 1))
    made = open_or_build(file)
    assert made.domains == ("north", "south")
    replace(made, domains=("all",), domain_ids=np.zeros(14, np.int64)).write()  # as it was built before
    assert open_or_build(file).domains == ("north", "south")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("path,label,domain", "got path, label, domain. Rename a column to 'class', or build the dataset with 'ltds"),
        ("path;class;domain", "Save the file with commas between the columns: these are semicolons."),
        ("path\tclass\tdomain", "Save the file with commas between the columns: these are tabs."),
    ],
)
def test_a_list_with_other_columns_says_what_to_do(tmp_path: Path, header: str, said: str) -> None:
    (tmp_path / "mine.csv").write_text(f"{header}\n1.png,cat,north\n")
    for read in (open_or_build, preview):
        with pytest.raises(DataError, match=re.escape(said)):
            read(tmp_path / "mine.csv")


def test_a_list_has_the_test_images_of_its_folder(tmp_path: Path) -> None:
    photos = write(tmp_path / "photos", *many("a", "cat", 200), *many("a", "dog", 80), *many("a", "elk", 5))
    file = listed(photos)
    assert preview(file).counts("test").tolist() == preview(photos).counts("test").tolist() == [[16, 16, 1]]
    file.write_text("path,class,split\na/cat/0.png,cat,train\na/cat/1.png,cat,test\n")
    assert preview(file).counts("test").tolist() == [[1]]


@pytest.mark.parametrize("as_list", [False, True])
def test_images_are_planned_once_and_not_again_for_a_finished_dataset(
    photos: Path, monkeypatch: pytest.MonkeyPatch, as_list: bool
) -> None:
    write(photos, "north/cat/2021/1.png", "north/cat/old 1/1.png", "north/cat 2/1.png")
    source, planned, searched = listed(photos) if as_list else photos, [], []
    for module in (folder, lists):
        monkeypatch.setattr(module, "make_plan", lambda *a, **how: planned.append(a) or make_plan(*a, **how))
    real = raw.images_below
    monkeypatch.setattr(raw, "images_below", lambda *given, **how: searched.append(given) or real(*given, **how))
    monkeypatch.setattr(folder, "_walk", None)  # of the folder builder, which nobody has told what is there
    seen, made = preview(source), open_or_build(source)
    assert len(planned) == 2
    assert [path.removeprefix("source/") for path in made.paths] == list(seen.paths)
    assert made.split_ids.tolist() == seen.split_ids.tolist()
    assert open_or_build(source).checksum == made.checksum
    assert (len(planned), len(searched)) == (2, 0 if as_list else 3)


def test_the_folder_builder_finds_the_same_images_in_the_same_order(photos: Path) -> None:
    write(photos, "north/cat/2021/1.png", "north/cat/old 1/1.png", "north/cat 2/1.png")
    _, used, config = read_folder(photos)
    found, told = (folder.plan_folder("photos", photos, config, images=images) for images in (None, used))
    assert found == told
    assert len(found.paths) == 17


def test_a_folder_of_images_is_no_dataset(photos: Path) -> None:
    with pytest.raises(ImageFolderError, match="a folder of images without a manifest") as caught:
        open_dataset(photos)
    assert pickle.loads(pickle.dumps(caught.value)).source == photos
    with pytest.raises(DataError, match="there is none"):
        open_dataset("nowhere")
    Path("notes.md").touch()
    for opened in (open_or_preview, open_or_build):  # which take images, too
        with pytest.raises(DataError, match=r"'nowhere' to be a folder of images .*domain/class/.* nothing there\."):
            opened("nowhere")
        with pytest.raises(DataError, match=r"but got another file\. Check the path\."):
            opened("notes.md")
    Path("empty").mkdir()
    Path("empty", "notes.md").touch()
    for opened in (open_dataset, open_or_preview, open_or_build):
        with pytest.raises(DataError, match=r"'empty' to be .* a folder of images, but got one with no images in it"):
            opened("empty")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_data_home_that_cannot_be_written_to(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = photos.parent / "closed"
    home.mkdir(mode=0o500)
    monkeypatch.setenv("LTDS_DATA", str(home))
    with pytest.raises(DataError, match="LTDS_DATA"):
        open_or_build(photos)


def test_a_data_home_that_is_a_file(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (photos.parent / "file").write_text("")
    monkeypatch.setenv("LTDS_DATA", str(photos.parent / "file"))
    with pytest.raises(DataError, match="LTDS_DATA"):
        open_or_build(photos)


def test_a_data_home_without_links_is_named(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "symlink", no_links)
    with pytest.raises(
        DataError, match=r"'data' to be on a disk that can hold symbolic .* LTDS_DATA to a folder on an"
    ):
        open_or_build(photos)


def test_disks_without_inode_numbers(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (photos / "north" / "loop").symlink_to(photos)
    found = list(images_below(photos))
    assert len(found) == 15
    monkeypatch.setattr(image_files.os, "stat", stat_without_numbers)
    assert list(images_below(photos)) == found


def test_paths_of_windows_are_written_with_slashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_source, "os", SimpleNamespace(path=ntpath, sep="\\"))
    relative_path = build_source.relative_to(tmp_path)
    assert relative_path("north/./cat/1.png") == "north/cat/1.png"
    assert relative_path("north\\cat\\1.png") == "north/cat/1.png"
    assert relative_path("../cat/1.png") is None
