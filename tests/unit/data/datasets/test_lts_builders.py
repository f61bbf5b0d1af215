"""AWA2-LTS, ImageNet-LTS and LTS of any folder: the paper's numbers on real names, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.data.datasets import awa2_lts, imagenet_lts, lts
from ltds.data.datasets.awa2_lts import Awa2LtsConfig
from ltds.data.datasets.imagenet_lts import ImagenetLtsConfig
from ltds.data.datasets.lts import LtsConfig
from ltds.data.manifest import Manifest
from ltds.data.stylelist import missing_styles, read_style_list, require_styles
from ltds.reporting.paper.matching import paper_table

SHARED = Path(__file__).resolve().parents[4].parent / "shared"
SMALL = {"n_max": 12, "n_min": 3, "val_per_class": 3, "test_per_class": 5}
CLASSES = [f"animal{i:02d}" for i in range(12)]


def shared(*parts: str) -> Path:
    path = SHARED.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} from the folder 'shared' beside the repository")
    return path


def make_images(folder: Path, names: list[str]) -> None:
    """One small JPEG under all these names."""
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / "seed-image"
    Image.new("RGB", (8, 6), (200, 90, 30)).save(first, format="JPEG")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(first, folder / name)
    first.unlink()


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A little AWA2: twelve classes of 20 to 31 images, two predicates, one of them unrated once."""
    base = tmp_path / "AwA2"
    names = [f"{name}/{name}_{10001 + i}.jpg" for c, name in enumerate(CLASSES) for i in range(20 + c)]
    make_images(base / "JPEGImages", names)
    (base / "classes.txt").write_text("".join(f"{i + 1:6d}\t{name}\n" for i, name in enumerate(CLASSES)))
    (base / "predicates.txt").write_text("     1\tfurry\n     2\tbig\n")
    rows = [f"{c if c else -1:.2f} {100 - c:.2f}" for c in range(12)]
    (base / "predicate-matrix-continuous.txt").write_text("\n".join(rows) + "\n")
    return base


def small(**settings: object) -> Awa2LtsConfig:
    return parse(Awa2LtsConfig, {**SMALL, **settings})


@pytest.fixture(scope="module")
def awa2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of AWA2's 37,322 names, each the same small image."""
    meta = shared("awa2")
    base = tmp_path_factory.mktemp("awa2") / "Animals_with_Attributes2"
    names = [line.split()[0] for line in (meta / "all_images.txt").read_text().splitlines()]
    make_images(base / "JPEGImages", names)
    for name in ("classes.txt", "predicates.txt", "predicate-matrix-continuous.txt"):
        (base / name).symlink_to(meta / name)
    return base


def test_awa2_lts_has_the_papers_numbers(awa2: Path, tmp_path: Path) -> None:
    made = awa2_lts.build(tmp_path / "a", awa2.parent, Awa2LtsConfig(damaged="unchecked"))
    expected = json.loads((SHARED / "fixtures" / "worked_examples.json").read_text())["examples"][
        "longtail_counts_awa2"
    ]
    train, val, test = (made.counts(split) for split in ("train", "val", "test"))
    sizes = json.loads((shared("awa2") / "class_counts.json").read_text())
    order = sorted(range(50), key=lambda c: (-sizes[made.classes[c]], c))
    assert train.sum(axis=0)[order].tolist() == expected["expected"]["counts"]
    assert train.sum() == 8464
    assert (test == 10).all()
    assert ((val > 0) == (train > 0)).all()
    assert set(val[val > 0].tolist()) == {6}
    assert made.domains == ("Original", "Hayao", "Shinkai", "Vangogh", "Ukiyoe")
    assert [len(made.task(domain).open_classes) for domain in made.domains] == [1, 1, 1, 1, 1]
    assert (train[:, order[:10]] > 0).all()
    assert made.provenance["facts"] == {"images_of_AWA2_that_the_source_lacks": 0}
    assert made.checksum == "920bd3b0d9632301022120455a010ecf713d5779c8e474f4a095705784b1a409"  # seed 0, everywhere
    with (tmp_path / "a" / "semantics" / "attributes.csv").open() as stream:
        table = list(csv.reader(stream))
    assert (len(table), len(table[0])) == (51, 86)


def test_each_image_has_one_style_and_one_split(zoo: Path, tmp_path: Path) -> None:
    made = awa2_lts.build(tmp_path / "a", zoo, small())
    images = ["/".join(path.split("/")[-2:]) for path in made.paths]
    assert len(set(images)) == len(images)
    for path, label, domain in zip(made.paths, made.labels, made.domain_ids, strict=True):
        folder = "source" if domain == 0 else f"images/{made.domains[domain].lower()}"
        assert path.startswith(f"{folder}/{made.classes[label]}/")
    assert sorted(made.counts("train").sum(axis=0).tolist())[::-1] == [12, 7, 6, 5, 5, 4, 4, 3, 3, 3, 3, 3]
    assert made.counts("train").sum(axis=0).argmax() == 11  # the largest class
    assert Manifest.read(tmp_path / "a").checksum == made.checksum


def test_the_style_list_names_what_is_to_be_made(zoo: Path, tmp_path: Path) -> None:
    made = awa2_lts.build(tmp_path / "a", zoo, small(styles=["hayao", "classical:oil"]))
    assert made.domains == ("Original", "Hayao", "Oil")
    images = list(read_style_list(made.root))
    assert [image.path for image in images] == [path for path in made.paths if not path.startswith("source/")]
    assert {image.style for image in images} == {"hayao", "classical:oil"}
    for image in images:
        assert (made.root / image.source).is_file()
        assert image.path.split("/")[-2:] == image.source.split("/")[-2:]
    missing = missing_styles(made.root)
    assert missing == dict(Counter(image.style for image in images))
    with pytest.raises(DataError, match=rf"but got missing ones: .* of 'hayao'.*ltds data stylize {made.root}"):
        require_styles(made.root)
    for image in images:
        (made.root / image.path).parent.mkdir(parents=True, exist_ok=True)
        os.link(made.root / image.source, made.root / image.path)
    assert missing_styles(made.root) == {}
    require_styles(made.root)


def test_unrated_predicates_take_the_mean(zoo: Path, tmp_path: Path) -> None:
    made = awa2_lts.build(tmp_path / "a", zoo, small())
    with (made.root / "semantics" / "attributes.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert (rows[0]["class"], rows[0]["furry"], rows[0]["big"]) == ("animal00", "6", "100")
    assert rows[11]["furry"] == "11"


def test_building_again_is_free_and_other_settings_are_refused(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = awa2_lts.build(tmp_path / "a", zoo, small())
    monkeypatch.setattr(awa2_lts, "images_in", lambda folder: pytest.fail("looked at the images again"))
    assert awa2_lts.build(tmp_path / "a", zoo, small()).checksum == first.checksum
    with pytest.raises(DataError, match=r"awa2-lts with these settings, but got seed=0\. Choose another folder"):
        awa2_lts.build(tmp_path / "a", zoo, small(seed=1))


def test_seeds_differ_and_depend_on_nothing_else(zoo: Path, tmp_path: Path) -> None:
    one, again, other = (
        awa2_lts.build(tmp_path / name, zoo, small(seed=seed)).checksum for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one == again != other


def test_a_dataset_follows_its_images_to_another_place(zoo: Path, tmp_path: Path) -> None:
    first = awa2_lts.build(tmp_path / "a", zoo, small())
    moved = zoo.rename(tmp_path / "moved")
    second = awa2_lts.build(tmp_path / "a", moved, small())
    assert second.checksum == first.checksum
    assert (tmp_path / "a" / "source").resolve() == moved / "JPEGImages"
    (moved / "JPEGImages" / "animal03" / "animal03_10001.jpg").unlink()
    elsewhere = moved.rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"the images that '.*' was built from, but got other names"):
        awa2_lts.build(tmp_path / "a", elsewhere, small())


def test_a_half_built_folder_is_built_anew_and_a_foreign_one_refused(zoo: Path, tmp_path: Path) -> None:
    whole = awa2_lts.build(tmp_path / "a", zoo, small())
    (tmp_path / "a" / "manifest.json").unlink()
    (tmp_path / "a" / "manifest.csv").write_text("path,cl")
    assert awa2_lts.build(tmp_path / "a", zoo, small()).checksum == whole.checksum
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    with pytest.raises(DataError, match=r"a new or empty folder, but got 'thesis.tex' in it"):
        awa2_lts.build(tmp_path / "b", zoo, small())
    with pytest.raises(DataError, match="outside the folder of the images"):
        awa2_lts.build(zoo / "JPEGImages" / "out", zoo, small())


def test_a_damaged_image_is_named_and_left_out_if_asked(zoo: Path, tmp_path: Path) -> None:
    whole = awa2_lts.build(tmp_path / "a", zoo, small())
    victim = next(path for path in whole.paths if path.startswith("images/hayao")).removeprefix("images/hayao/")
    file = zoo / "JPEGImages" / victim
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"1 that cannot be decoded: '{victim}'.*'leave-out' for .* 'damaged'"):
        awa2_lts.build(tmp_path / "b", zoo, small())
    assert not (tmp_path / "b").exists()
    left = awa2_lts.build(tmp_path / "c", zoo, small(damaged="leave-out"))
    assert not any(path.endswith(victim) for path in left.paths)
    assert (left.counts("train") == whole.counts("train")).all()  # another image is drawn instead
    assert (left.counts("test") == whole.counts("test")).all()
    other_classes = [p for p in whole.paths if p.split("/")[-2] != victim.split("/")[0]]
    assert set(other_classes) <= set(left.paths)
    assert list(left.provenance["left_out"]) == [victim]
    assert not any(image.path.endswith(victim) for image in read_style_list(left.root))
    assert awa2_lts.build(tmp_path / "d", zoo, small(damaged="unchecked")).checksum == whole.checksum


def test_where_no_image_is_over_a_damaged_one_is_at_the_cost_of_test(zoo: Path, tmp_path: Path) -> None:
    config = {
        "styles": ["classical:oil"],
        "val_per_class": 9,
        "test_per_class": 10,
        "fewest": 1,
        "damaged": "leave-out",
    }
    source = zoo / "JPEGImages"
    whole = lts.build(tmp_path / "a", source, parse(LtsConfig, config))
    trained = [p for p, c, s in zip(whole.paths, whole.labels, whole.split_ids, strict=True) if (c, s) == (0, 0)]
    assert len(trained) == 1  # of 20, without 9 + 10
    victim = "/".join(trained[0].split("/")[-2:])
    (source / victim).unlink()
    (source / victim).write_bytes(b"")
    left = lts.build(tmp_path / "b", source, parse(LtsConfig, config))
    assert [left.counts(split).sum(axis=0)[0] for split in ("train", "test")] == [1, 9]
    assert left.counts("test").sum(axis=0)[1:].tolist() == [10] * 11


def test_a_missing_source_is_told_where_to_get_it(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no such folder.*Looked in .*Download AwA2-data\.zip"):
        awa2_lts.build(tmp_path / "a", tmp_path / "nowhere", small())
    (zoo / "classes.txt").rename(zoo / "classes.old")
    with pytest.raises(DataError, match=r"no 'classes\.txt' in"):
        awa2_lts.build(tmp_path / "a", zoo, small())
    (zoo / "classes.old").rename(zoo / "classes.txt")
    (zoo / "JPEGImages" / "animal05").rename(zoo / "animal05")
    with pytest.raises(DataError, match="a folder of images for each class, but got no 'animal05'"):
        awa2_lts.build(tmp_path / "a", zoo, small())


def test_too_few_images_name_the_class(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"too few for 'animal11' \(31\)\. Lower the settings test_per_class"):
        awa2_lts.build(tmp_path / "a", zoo, small(n_max=24))


def test_too_few_images_of_every_class_name_the_classes(zoo: Path, tmp_path: Path) -> None:
    config = parse(LtsConfig, {"styles": ["classical:oil"], "val_per_class": 40, "test_per_class": 60})
    with pytest.raises(DataError, match=r"100 images for validation and test.* too few for 'animal00' \(\d+\)"):
        lts.build(tmp_path / "a", zoo / "JPEGImages", config, name="zoo")


def published(made: Manifest, folder: Path) -> Path:
    """The authors' files for this dataset."""
    folder.mkdir()
    for d, domain in enumerate(made.domains):
        for split in ("train", "val", "test"):
            lines = []
            for row in made.rows(split, domain):
                name = "/".join(made.paths[row].split("/")[-2:])
                styled = f"original/{name}" if d == 0 else f"{domain.lower()}/{name[:-4]}_{domain.lower()}.jpg"
                lines.append(f"{styled} {made.labels[row]}")
            (folder / f"{domain}_{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


def test_the_authors_lists_are_used_as_they_are(zoo: Path, tmp_path: Path) -> None:
    drawn = awa2_lts.build(tmp_path / "a", zoo, small(seed=7))
    lists = published(drawn, tmp_path / "image_list")
    listed = awa2_lts.build(tmp_path / "b", zoo, Awa2LtsConfig(), lists=tmp_path)
    columns = ("paths", "labels", "domain_ids", "split_ids")
    rows = [sorted(zip(*(getattr(m, column) for column in columns), strict=True)) for m in (drawn, listed)]
    assert rows[0] == rows[1]
    assert (listed.classes, listed.domains) == (drawn.classes, drawn.domains)
    assert listed.provenance["facts"]["originals_in_several_splits"] == 0
    with pytest.raises(ConfigError, match="left out when lists decide about the images, but got seed"):
        awa2_lts.build(tmp_path / "c", zoo, Awa2LtsConfig(seed=7), lists=lists)
    with (lists / "Hayao_test.txt").open("a") as stream:
        first = next(p for p in drawn.paths if p.startswith("source/")).removeprefix("source/")
        stream.write(f"hayao/{first[:-4]}_hayao.jpg {CLASSES.index(first.split('/')[0])}\n")
    with pytest.raises(DataError, match="one with other lists"):
        awa2_lts.build(tmp_path / "b", zoo, Awa2LtsConfig(), lists=lists)
    leaky = awa2_lts.build(tmp_path / "d", zoo, Awa2LtsConfig(), lists=lists)
    assert leaky.provenance["facts"]["originals_in_several_splits"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hayao/animal00/animal00_99999_hayao.jpg 0", "in the source, but got 1 that are not: 'hayao/animal00/"),
        ("hayao/animal01/animal01_10001_hayao.jpg 0", "label 0 in .* of one class, but got 'animal00' and 'animal01'"),
        ("nonsense", "line 1 of .*Hayao_test.txt.* 'path label', but got 'nonsense'"),
    ],
)
def test_wrong_lists_are_refused(zoo: Path, tmp_path: Path, line: str, said: str) -> None:
    lists = published(awa2_lts.build(tmp_path / "a", zoo, small()), tmp_path / "lists")
    (lists / "Hayao_test.txt").write_text(line + "\n")
    with pytest.raises(DataError, match=said):
        awa2_lts.build(tmp_path / "b", zoo, Awa2LtsConfig(), lists=lists)
    (lists / "Hayao_test.txt").unlink()
    with pytest.raises(DataError, match=r"no 'Hayao_test.txt' in"):
        awa2_lts.build(tmp_path / "b", zoo, Awa2LtsConfig(), lists=lists)


def test_any_class_folders_become_long_tailed_and_stylised(zoo: Path, tmp_path: Path) -> None:
    config = parse(LtsConfig, {"styles": ["classical:oil"], "val_per_class": 4, "test_per_class": 6, "fewest": 1})
    made = lts.build(tmp_path / "a", zoo / "JPEGImages", config, name="zoo")
    assert (made.name, made.classes, made.domains) == ("zoo", tuple(CLASSES), ("Original", "Oil"))
    train = made.counts("train").sum(axis=0)
    assert (train.max(), train.min()) == (21, 10)  # the largest and smallest class, without 4 + 6
    assert (made.counts("test") == 3).all()
    with pytest.raises(DataError, match="a folder of class folders, but got 0 folders with images"):
        lts.build(tmp_path / "b", zoo / "JPEGImages" / "animal00", config)


def test_other_settings_make_another_name(zoo: Path, tmp_path: Path) -> None:
    def name(classes: int = 50, **settings: object) -> str:
        return awa2_lts._name(parse(Awa2LtsConfig, settings), classes)

    assert name() == name(seed=3, damaged="leave-out") == "awa2-lts"
    assert name(n_max=500) == "awa2-lts-500-20"
    said = name(exclusive=0, head=1.0, test_per_class=20)
    assert said == "awa2-lts-head-1.0-exclusive-0-test-per-class-20"
    other = [name(styles=styles) for styles in (["hayao"], ["hayao", "vangogh"], ["hayao"])]
    assert other[0] == other[2] != other[1]
    assert re.fullmatch(r"awa2-lts-styles-[0-9a-f]{6}", other[0])
    assert awa2_lts.build(tmp_path / "a", zoo, small()).name == (
        "awa2-lts-12-classes-12-3-val-per-class-3-test-per-class-5"
    )
    assert not any(map(paper_table, (said, *other, name(12))))
    assert paper_table(name()) == "2"


def test_an_unknown_style_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"got 'classical:oill'\. Did you mean 'classical:oil'\?"):
        parse(LtsConfig, {"styles": ["hayao", "classical:oill"]})


@pytest.mark.parametrize("styles", [["oil", "classical:oil"], ["original"], []])
def test_styles_must_differ(styles: list[str]) -> None:
    with pytest.raises(ConfigError, match="styles"):
        parse(LtsConfig, {"styles": styles})


def imagenet_lists(folder: Path) -> Path:
    """The real val and test lists, and a train list with the real class frequencies."""
    meta = shared("imagenet_lt")
    folder.mkdir()
    for split in ("val", "test"):
        (folder / f"ImageNet_LT_{split}.txt").symlink_to(meta / f"ImageNet_LT_{split}.txt")
    wnids = [line.split()[0] for line in (meta / "classnames.txt").read_text().splitlines()]
    counts = json.loads((meta / "cls_freq_ImageNet_LT.json").read_text())
    with (folder / "ImageNet_LT_train.txt").open("w") as stream:
        for label, (wnid, count) in enumerate(zip(wnids, counts, strict=True)):
            stream.writelines(f"train/{wnid}/{wnid}_t{i}.JPEG {label}\n" for i in range(count))
    return folder


def test_imagenet_lts_of_the_real_lists(tmp_path: Path) -> None:
    lists = imagenet_lists(tmp_path / "lists")
    plan = imagenet_lts.plan(lists, ImagenetLtsConfig(), shared("imagenet_lt", "classnames.txt"))
    counts = {split: np.zeros((5, 1000), np.int64) for split in ("train", "val", "test")}
    for split, table in zip(("train", "val", "test"), counts.values(), strict=True):
        rows = np.array(plan.split_ids) == list(counts).index(split)
        np.add.at(table, (np.array(plan.domain_ids)[rows], np.array(plan.labels)[rows]), 1)
    train = counts["train"].sum(axis=0)
    assert (train.sum(), train.max(), train.min()) == (115_846, 1280, 5)
    assert (counts["test"] == 10).all()
    assert ((counts["val"] > 0) == (counts["train"] > 0)).all()
    assert set(counts["val"][counts["val"] > 0].tolist()) == {4}
    assert len(plan.paths) == 179_410
    seen = counts["train"] > 0
    assert [int((seen[d] & (seen.sum(axis=0) == 1)).sum()) for d in range(5)] == [1] * 5
    assert (plan.name, plan.notes) == ("imagenet-lts", [])
    assert imagenet_lts.plan(lists, ImagenetLtsConfig(head=0.5)).name == "imagenet-lts-head-0.5"
    assert plan.classes[:2] == ("tench", "goldfish")
    twins = [name for name in plan.classes if name.startswith(("missile (", "sunglasses ("))]
    assert len(twins) == 4


@pytest.mark.parametrize("flat", [False, True])
def test_imagenet_lts_finds_its_images(tmp_path: Path, flat: bool) -> None:
    wnids = [f"n{i:08d}" for i in range(12)]
    images = {
        "train": [f"train/{w}/{w}_{i}.JPEG" for w in wnids for i in range(12 - wnids.index(w))],
        "val": [f"train/{w}/{w}_v{i}.JPEG" for w in wnids for i in range(5)],
        "test": [f"val/{w}/ILSVRC2012_val_{wnids.index(w)}{i}.JPEG" for w in wnids for i in range(5)],
    }
    lists = tmp_path / "lists"
    lists.mkdir()
    for split, names in images.items():
        lines = [f"{name} {wnids.index(name.split('/')[1])}" for name in names]
        (lists / f"ImageNet_LT_{split}.txt").write_text("\n".join(lines))
    every = [name for names in images.values() for name in names]
    stored = [f"val/{n.split('/')[2]}" if flat and n.startswith("val/") else n for n in every]
    make_images(tmp_path / "ILSVRC2012", stored)
    made = imagenet_lts.build(tmp_path / "a", tmp_path, ImagenetLtsConfig(), lists=lists)
    assert made.classes == tuple(wnids)
    assert made.name == "imagenet-lts-78-60-60"
    assert made.provenance["notes"] == [
        "these are not the official lists, so the name differs: they have 78 / 60 / 60 images of 12 classes, "
        "the official ones 115,846 / 20,000 / 50,000 of 1,000"
    ]
    assert made.counts("train").sum(axis=0).tolist() == list(range(12, 0, -1))
    assert sum(p.startswith("source/val/ILS" if flat else "source/val/n0") for p in made.paths) == 12
    assert any(p.startswith("images/hayao/train/n0") for p in made.paths)
    (tmp_path / "ILSVRC2012" / stored[0]).unlink()
    with pytest.raises(DataError, match=r"complete, but got 1 missing: 'train/n00000000.*image-net\.org"):
        imagenet_lts.build(tmp_path / "b", tmp_path, ImagenetLtsConfig(), lists=lists)
    with (lists / "ImageNet_LT_test.txt").open("a") as stream:
        stream.write(f"\n{images['train'][0]} 0\n")
    with pytest.raises(DataError, match=r"1 more than once: 'train/n00000000/n00000000_0.JPEG \(train and test\)'"):
        imagenet_lts.build(tmp_path / "b", tmp_path, ImagenetLtsConfig(), lists=lists)
    (lists / "ImageNet_LT_val.txt").unlink()
    with pytest.raises(DataError, match=r"no 'ImageNet_LT_val\.txt'.*OpenLongTailRecognition"):
        imagenet_lts.build(tmp_path / "b", tmp_path, ImagenetLtsConfig(), lists=lists)
