"""`ltds.check`: each kind of trouble is found in a folder that has it, and the verdict says what to do."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import ltds
from ltds.cli.main import app
from ltds.core.errors import DataError
from ltds.core.rng import numpy_generator
from ltds.data.datasets.folder import FolderConfig
from ltds.data.datasets.folder import build as build_folder
from ltds.data.datasets.raw import open_or_build
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.trainable import trainable_task
from ltds.planning.check import run as check_module
from ltds.planning.check.duplicates import near_duplicates
from ltds.planning.check.features import probe_rows
from ltds.planning.check.looking import difference_hash, look_at
from ltds.planning.check.names import spelling_variants
from ltds.planning.check.page import html_page
from ltds.planning.check.probe import probe_distances, probe_domains
from ltds.planning.check.text import check_lines
from ltds.planning.class_texts import FoundEmbeddings
from ltds.planning.feasible import way_to_train


def draw(file: Path, *address: object, tint: tuple[int, int, int] = (0, 0, 0), side: int = 40) -> None:
    """A picture of large random blobs, different for each address."""
    rng = numpy_generator(0, "tests/check/" + "/".join(map(str, address)))
    small = rng.integers(0, 200, size=(6, 6, 3)) + np.array(tint)
    image = Image.fromarray(np.clip(small, 0, 255).astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)


@pytest.fixture(autouse=True)
def simple_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours and edges instead of a network: seconds instead of minutes."""
    monkeypatch.setattr(check_module, "pretrained_is_installed", lambda: False)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "my photos"
    counts = {("day", "ant"): 12, ("day", "bee"): 6, ("night", "ant"): 9, ("night", "bee"): 5, ("night", "yak"): 4}
    for (domain, name), count in counts.items():
        tint = (55 if name == "ant" else 0, 55 if name == "bee" else 0, 40 if domain == "night" else 0)
        for i in range(count):
            draw(root / domain / name / f"{i}.png", domain, name, i, tint=tint)
    return root


def test_counts_pairs_and_what_numbers_rest_on(photos: Path) -> None:
    found = ltds.check(photos)
    assert (found.name, found.images, found.classes) == ("my photos", 36, ("ant", "bee", "yak"))
    assert found.counts == ((12, 6, 0), (9, 5, 4))
    assert found.class_counts == {"ant": 21, "bee": 11, "yak": 4}
    assert found.ratio == 21 / 4
    assert found.missing_pairs == [("day", "yak")]
    assert found.single_domain_classes == {"yak": "night"}
    evidence = {e.domain: (e.known, e.open, e.open_classes) for e in found.evidence}
    assert evidence == {"day": (18, 0, ()), "night": (14, 4, ("yak",))}  # a held-out domain is tested on all its images
    assert found.problems == []
    said = " ".join(finding.text for finding in found.findings)
    assert "1 class in one domain only, so a model may learn the domain instead of the class: yak (night)" in said
    assert "would mean nothing, with fewer than 30 images: day (18 images), night (14 images)" in said
    assert "H, AUROC) would mean nothing where these are held out: night (4 images of yak)" in said
    assert not list(photos.parent.glob("data*")), "a check writes nothing"


def test_a_sample_of_many_images_is_named_as_such(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "MOST_IMAGES", 20)
    found = ltds.check(photos)
    assert (found.looked_at, found.images) == (20, 36)
    said = "Only 20 of 36 images were looked at, a sample of each class and domain: damaged images and copies among"
    assert any(finding.text.startswith(said) for finding in found.findings)
    monkeypatch.setattr(check_module, "MOST_IMAGES", 36)
    assert not any("were looked at" in finding.text for finding in ltds.check(photos).findings)


def test_the_verdict(photos: Path) -> None:
    tail, shift, start, collect = ltds.check(photos).verdict
    assert tail == "The classes are slightly long-tailed: 'ant' has 21 images, 'yak' 4 (ratio 5)."
    assert shift.startswith("The shift between domains is ")
    assert start.startswith("Start with the method '")
    assert "rare classes yak (4), bee (11)" in collect
    assert "yak outside 'night'" in collect


def test_trouble_is_found(photos: Path) -> None:
    (photos / "day/ant/broken.png").write_bytes(b"")
    shutil.copy(photos / "day/ant/0.png", photos / "night/ant/copy.png")
    shutil.copy(photos / "day/ant/1.png", photos / "day/bee/wrong.png")
    draw(photos / "day/Bee/0.png", "another")
    draw(photos / "day/ant/tiny.png", "tiny", side=20)
    Image.new("RGB", (300, 40), "red").save(photos / "night/ant/wide.png")
    with Image.open(photos / "day/ant/5.png") as image:
        image.convert("L").save(photos / "day/ant/grey.png")
    found = ltds.check(photos)
    assert found.unreadable == {"day/ant/broken.png": "an empty file (0 bytes)"}
    assert found.class_variants == (("Bee", "bee"),)
    assert found.tiny == ("day/ant/tiny.png",)
    assert found.extreme == ("night/ant/wide.png",)
    assert found.grey == 1
    pairs = {frozenset((d.first, d.second)): d.across for d in found.duplicates}
    assert "classes" in pairs[frozenset(("day/ant/1.png", "day/bee/wrong.png"))]
    assert "domains" in pairs[frozenset(("day/ant/0.png", "night/ant/copy.png"))]
    assert len(found.problems) >= 4
    text = "\n".join(check_lines(found))
    assert "Problems:" in text
    assert "'Bee' and 'bee' differ in case, spacing or encoding only" in text
    assert max(map(len, text.splitlines())) < 140


def test_16_bit_images_that_use_little_of_their_range(photos: Path, tmp_path: Path) -> None:
    ramp = np.linspace(16, 4080, 40 * 40).reshape(40, 40).astype(np.uint16)
    for name, factor in (("twelve", 1), ("eight", 1 / 16), ("sixteen", 16)):
        Image.fromarray((ramp * factor).astype(np.uint16)).save(photos / "day" / "ant" / f"{name}.png")
    Image.fromarray(np.zeros((40, 40), np.uint16)).save(photos / "day" / "ant" / "black.png")
    sentence = "2 16-bit images use at most 1/16 of the range (largest value 4080), so they are almost black: "
    sentence += "rescale them"
    found = ltds.check(photos)
    assert found.narrow == {"day/ant/eight.png": 255, "day/ant/twelve.png": 4080}
    cautions = [finding.text for finding in found.findings if finding.level == "caution"]
    assert f"{sentence}: day/ant/eight.png, day/ant/twelve.png" in cautions
    assert found.to_dict()["narrow_16_bit"] == found.narrow
    built = build_folder(tmp_path / "built", photos, FolderConfig())
    assert built.provenance["notes"] == [sentence]
    again = [finding.text for finding in ltds.check(built).findings if "16-bit" in finding.text]
    assert len(again) == 1, "said once"
    (photos / "day" / "ant" / "eight.png").unlink()
    one = "1 16-bit image uses at most 1/16 of the range (largest value 4080), so it is almost black: rescale it"
    assert any(finding.text.startswith(one) for finding in ltds.check(photos).findings)


def test_names_that_are_not_utf8_are_a_problem(photos: Path, tmp_path: Path) -> None:
    try:
        os.rename(photos / "day" / "ant" / "0.png", os.fsencode(photos / "day" / "ant") + b"/caf\xe9.png")
        os.rename(photos / "night" / "yak", os.fsencode(photos / "night") + b"/y\xe4k")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    Image.new("RGB", (8, 40)).save(os.fsencode(photos / "day" / "ant") + b"/tiny\xe9.png")
    with pytest.raises(DataError, match="to be UTF-8, but got 7 with other bytes"):
        build_folder(tmp_path / "built", photos, FolderConfig())
    found = ltds.check(photos)
    assert len(found.not_utf8) == 7
    assert found.training is None, "it would be refused"
    (problem,) = (text for text in found.problems if "UTF-8" in text)
    assert problem.startswith("7 names of files and folders are not UTF-8, so no dataset can be built: y\\xe4k, ")
    assert "day/ant/caf\\xe9.png" in found.not_utf8
    done = CliRunner().invoke(
        app, ["data", "check", str(photos), "--json", str(tmp_path / "c.json"), "--out", str(tmp_path / "c.html")]
    )
    assert done.exit_code == 1
    assert json.loads((tmp_path / "c.json").read_text())["tiny"] == ["day/ant/tiny\\xe9.png"]
    assert "y\\xe4k" in (tmp_path / "c.html").read_text()


def test_copies_are_counted_for_everything_that_they_lie_across(tmp_path: Path) -> None:
    root = tmp_path / "p"
    copies = ["train/a/cat/0.png", "test/b/cat/0.png"], ["val/a/cat/1.png", "test/b/cat/1.png"]
    for number, (first, second) in enumerate([*copies, ["train/a/dog/2.png", "train/b/dog/2.png"]]):
        draw(root / first, number)
        (root / second).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / first, root / second)
    found = ltds.check(root)
    assert sorted(d.across for d in found.duplicates) == [
        ("domains",),
        ("splits", "domains"),
        ("validation", "domains"),
    ]
    said = [text.partition(":")[0] for text in found.problems]
    assert said == [
        "1 pair of near-identical images lies in training and in test, so the test is too easy",
        "1 pair of near-identical images lies in validation and in test, so the test is a little too easy",
        "3 pairs of near-identical images lie in two domains, so a held-out domain would not be new",
    ]
    assert {"splits", "domains"} in [set(pair["across"]) for pair in found.to_dict()["near_duplicates"]]


def test_unreadable_images_count_nowhere(photos: Path) -> None:
    before = ltds.check(photos)
    for name in ("day/zoo/0.png", "night/zoo/0.png", "day/ant/broken.png", "dusk/ant/0.png"):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        (photos / name).write_bytes(b"not an image")
    found = ltds.check(photos)
    same = ("classes", "domains", "counts", "splits", "evidence", "duplicates", "probes", "training", "method_reason")
    assert {name: getattr(found, name) for name in same} == {name: getattr(before, name) for name in same}
    assert len(found.unreadable) == 4
    assert found.problems[0].startswith("4 images cannot be read and would be left out: ")
    assert found.problems[1:] == [
        "1 class has no image that can be read: 'zoo'",
        "1 domain has no image that can be read: 'dusk'",
    ]
    assert found.to_dict()["unreadable_classes"] == ["zoo"]


def test_a_list_with_missing_images_cannot_be_trained_on(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos.parent)
    good = [path.relative_to(photos) for path in sorted(photos.glob("*/*/*.png"))]
    (photos / "day/ant/broken.png").write_bytes(b"")
    listed, names = photos / "list.csv", [*map(str, good), "day/ant/broken.png", "day/ant/gone.png"]

    def write(paths: list[str]) -> None:
        listed.write_text("\n".join(["path,class,domain", *(f"{path},ant,day" for path in paths)]))

    write(names)
    found = ltds.check(listed)
    assert found.missing == ("day/ant/gone.png",)
    assert found.problems[:2] == [
        "1 image of the list is missing, so training would stop: day/ant/gone.png. Correct or delete its line",
        "1 image cannot be read and would be left out: day/ant/broken.png (an empty file (0 bytes))",
    ]
    assert found.training is None
    assert "To train" not in CliRunner().invoke(app, ["data", "check", str(listed)]).output
    write([name.replace("/", "\\") for name in names])
    for refuses in (ltds.check, open_or_build):
        with pytest.raises(DataError, match=r"38 missing: .*They look like Windows paths: write them with / instead"):
            refuses(listed)


def test_a_dataset_with_unreadable_images_cannot_be_trained_on(toy: Manifest, tmp_path: Path) -> None:
    damaged = replace(toy, root=shutil.copytree(toy.root, tmp_path / "toy"))
    elk = [damaged.root / toy.paths[row] for row in np.flatnonzero(toy.labels == toy.classes.index("elk"))]
    for file in elk:
        file.write_bytes(b"not an image")
    found = ltds.check(damaged)
    assert found.images == len(toy) - len(elk)
    assert found.training is None
    assert found.problems[0].startswith(f"{len(elk)} images cannot be read, so training on this dataset would")
    assert found.problems[1] == "1 class has no image that can be read: 'elk'"


def test_a_class_that_is_unreadable_in_training_only(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "val/cat/2.png", "train/dog/3.png", "test/dog/4.png"):
        draw(tmp_path / "p" / name, name)
    (tmp_path / "p/train/cat/1.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"'cat' has validation .*\n- 1 image cannot be read: 'train/cat/1.png'"):
        ltds.check(tmp_path / "p")


def test_json_and_page(photos: Path) -> None:
    draw(photos / "day/<b>&/0.png", "odd name")
    found = ltds.check(photos)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["images"] == 37
    assert content["held_out"][1]["open_images"] == 4
    assert content["verdict"] == list(found.verdict)
    page = html_page(found)
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert "http" not in page


def test_one_domain(photos: Path) -> None:
    found = ltds.check(photos / "day")
    assert found.domains == ("all",)
    assert any("only one domain" in finding.text for finding in found.findings)
    assert "could not be measured" in found.verdict[1]
    assert list(check_lines(found))


def test_one_class(photos: Path) -> None:
    """There is no tail, no shift between shared classes and no method to speak of."""
    for folder in photos.glob("*/*"):
        if folder.name != "ant":
            shutil.rmtree(folder)
    found = ltds.check(photos)
    assert any("There is only one class ('ant')" in problem for problem in found.problems)
    assert found.verdict == (
        "Nothing can be trained on this data yet: it has one class, and a model chooses among two or more.",
    )
    assert (found.method, found.training) == ("", None)


def test_a_dataset_is_checked_as_it_is(toy: Manifest) -> None:
    found = ltds.check(toy.root)
    assert found.images == len(toy)
    assert found.splits == {split: len(toy.rows(split)) for split in ("train", "val", "test")}
    assert found.method == "ltds"
    assert found.training == {"estimate": "full"}


def test_the_method_is_the_one_that_the_training_command_uses(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = FoundEmbeddings("made from the class names")
    monkeypatch.setattr(check_module, "find_embeddings", lambda *_, **__: made)
    shutil.rmtree(photos / "night" / "yak")
    found = ltds.check(photos)  # two domains: with one held out, one is left
    assert found.training == {"estimate": "full"}
    assert found.method == "agg"
    assert found.verdict[2].endswith(
        "one source domain, and ltds needs two (counted without 'day', which one of the runs holds out)."
    )
    shutil.copytree(photos / "night", photos / "dusk")
    assert ltds.check(photos).method == "ltds"


def test_data_without_validation_images(toy: Manifest) -> None:
    words = "No image is for validation, on which the threshold for 'unknown' is chosen"
    bare = replace(toy, split_ids=np.where(toy.split_ids == SPLITS.index("val"), SPLITS.index("train"), toy.split_ids))
    assert [sum(f.text.startswith(words) for f in ltds.check(data).findings) for data in (toy, bare)] == [0, 1]


def test_published_data_is_trained_with_the_method_that_is_named(toy: Manifest) -> None:
    found = ltds.check(replace(toy, name="pacs"))
    assert found.training == {"method": "ltds", "estimate": "full"}
    without = ltds.check(replace(toy, name="pacs", root=toy.root / "images", paths=_below(toy, "images")))
    assert without.method == without.training["method"] == "dc"  # type: ignore[index]
    assert "no class embeddings, which ltds needs: the command 'ltds data embed' makes some" in without.verdict[2]


def _below(manifest: Manifest, folder: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(f"{folder}/") for path in manifest.paths)


def without_training_images(toy: Manifest, *domains: str) -> Manifest:
    moved = np.isin(toy.domain_ids, [toy.domains.index(domain) for domain in domains])
    return replace(toy, split_ids=np.where(moved, SPLITS.index("test"), toy.split_ids))


def test_domains_without_training_images(toy: Manifest) -> None:
    one = ltds.check(without_training_images(toy, "oil"))
    assert [e.domain for e in one.evidence] == ["oil"]
    assert one.to_dict()["test_only_domains"] == ["oil"]
    (caution,) = [f for f in one.findings if "training images" in f.text]
    assert (caution.level, caution.text) == (
        "caution",
        "'oil' has no training images, so this domain can only be held out",
    )
    assert "2 source domains" in one.verdict[2]
    assert one.training == one.to_dict()["training"] == {"held_out": "oil"}
    two = ltds.check(without_training_images(toy, "oil", "wax"))
    assert two.evidence == ()
    assert two.training is None
    assert any(text.startswith("2 domains have no training images: oil, wax. A run can hold") for text in two.problems)
    assert "one source domain" in two.verdict[2]
    none = ltds.check(without_training_images(toy, *toy.domains))
    assert [text for text in none.problems if "train" in text] == [
        "No image is for training, so nothing can be trained on this data. A trained model can be evaluated on it"
    ]


def test_folders_for_evaluation_only(photos: Path) -> None:
    for split in ("val", "test"):
        shutil.copytree(photos / "night", photos.parent / "site" / split)
    found = ltds.check(photos.parent / "site")
    assert found.splits == {"train": 0, "val": 18, "test": 18}
    assert (found.domains, found.evidence, found.training, found.method) == (("all",), (), None, "")
    assert [finding.text for finding in found.findings] == [
        "No image is for training, so nothing can be trained on this data. A trained model can be evaluated on it"
    ], "copies in val and test, one domain and rare classes matter to training only"
    assert found.verdict[2:] == (
        "Nothing can be trained on this data: it has no training images. Evaluate a trained model on it.",
    )
    assert "No image is for training" in "\n".join(check_lines(found))
    assert "Nothing can be trained" in html_page(found)
    assert found.to_dict()["training"] is None
    draw(photos.parent / "site/train/ant/0.png", "trained")
    with pytest.raises(DataError, match="class 'bee' has validation images but no training image in any domain"):
        ltds.check(photos.parent / "site")


def test_the_command_says_what_data_for_evaluation_is_for(photos: Path) -> None:
    for split in ("val", "test"):
        shutil.copytree(photos / "night", photos.parent / "site" / split)
    result = CliRunner().invoke(app, ["data", "check", str(photos.parent / "site")])
    assert result.exit_code == 1
    assert "nothing can be trained on this data" in result.output
    command = f"ltds evaluate RUN --data {photos.parent / 'site'}"
    assert f"To evaluate a trained model on this data: {command}" in result.output
    assert "To train" not in result.output


def test_too_few_images_for_a_test(toy: Manifest) -> None:
    untested = replace(toy, split_ids=np.zeros_like(toy.split_ids))
    found = ltds.check(untested)
    assert found.training is None
    assert any("No image is left for a test, so no model can be measured" in text for text in found.problems)
    found = ltds.check(replace(untested, whole_held_out=True))
    assert found.training == {"held_out": "ink"}
    assert not any("No image is left" in text for text in found.problems)
    assert any("only a run that holds out a domain can be measured" in finding.text for finding in found.findings)


def test_a_domain_without_test_images_is_not_held_out(toy: Manifest) -> None:
    in_ink = toy.domain_ids == toy.domain_index("ink")
    untested = replace(toy, split_ids=np.where(in_ink, 0, toy.split_ids))
    with pytest.raises(DataError, match="the held-out domain 'ink' of 'toy' to have test images, because the outcome"):
        trainable_task(untested, "ink")
    trainable_task(replace(untested, whole_held_out=True), "ink")
    assert way_to_train(untested) == {"held_out": "oil"}


def test_no_image_can_be_read(tmp_path: Path) -> None:
    for name in ("a/cat/1.png", "b/cat/2.png"):
        (tmp_path / "p" / name).parent.mkdir(parents=True)
        (tmp_path / "p" / name).write_bytes(b"not an image")
    with pytest.raises(DataError, match="2 that cannot"):
        ltds.check(tmp_path / "p")


def test_near_duplicates_survive_another_size_and_format(tmp_path: Path) -> None:
    for i in range(6):
        draw(tmp_path / f"{i}.png", i, side=64)
    with Image.open(tmp_path / "0.png") as image:
        image.resize((200, 200), Image.Resampling.BICUBIC).save(tmp_path / "6.jpg", quality=85)
    Image.new("RGB", (50, 50), "white").save(tmp_path / "7.png")
    Image.new("RGB", (60, 60), "white").save(tmp_path / "8.png")  # flat images are like any other: never reported
    paths = [next(tmp_path.glob(f"{i}.*")) for i in range(9)]
    looks = look_at(paths, range(9))
    assert list(near_duplicates(looks.images)) == [(0, 6)]


@pytest.mark.parametrize(("copies", "fewest", "most"), [(2, 3, 3), (5, 30, 30), (100, 1000, 1300)])
def test_every_pair_of_few_copies_is_listed_but_not_of_many(
    tmp_path: Path, copies: int, fewest: int, most: int
) -> None:
    for i in range(3):
        draw(tmp_path / f"{i}.png", i, side=64)
    count = 3 * copies
    looks = look_at([tmp_path / f"{row % 3}.png" for row in range(count)], range(count))
    pairs = list(near_duplicates(looks.images))
    assert fewest <= len(set(pairs)) == len(pairs) <= most
    assert all(a < b and a % 3 == b % 3 for a, b in pairs)
    assert {b for _, b in pairs} == set(range(3, count)), "each is listed"


def test_the_hash_is_of_brightness_from_left_to_right() -> None:
    rising = Image.fromarray(np.tile(np.arange(0, 252, 28, dtype=np.uint8), (8, 1)))
    assert difference_hash(rising.convert("RGB")) == 2**64 - 1
    assert difference_hash(Image.new("RGB", (90, 80), "gray")) == 0


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["cat", "dog"], []),
        (["Cat", "cat", "dog"], [["Cat", "cat"]]),
        (["polar bear", "polar_bear", "Polar-Bear"], [["polar bear", "polar_bear", "Polar-Bear"]]),
        (["é", "e\u0301"], [["é", "e\u0301"]]),
        (["Straße", "STRASSE"], [["Straße", "STRASSE"]]),
        (["猫", "犬"], []),
    ],
)
def test_spelling(names: list[str], groups: list[list[str]]) -> None:
    assert spelling_variants(names) == groups


def test_the_probe_sees_a_shift_and_none() -> None:
    rng = numpy_generator(0, "tests/probe")
    labels, domains = np.tile(np.arange(3), 60), np.repeat(np.arange(3), 60)
    features = rng.normal(size=(180, 8)) * 0.3
    features[np.arange(180), labels] += 3
    same = probe_domains(features.astype(np.float32), labels, domains, ("a", "b", "c"))
    assert [p.domain for p in same] == ["a", "b", "c"]
    assert all(p.known == p.unseen == 1 and p.images == 60 for p in same)
    assert np.nanmax(probe_distances(features.astype(np.float32), labels, domains, 3)) < 0.15
    moved = features.copy()
    moved[domains == 2] = np.roll(moved[domains == 2], 1, axis=1)  # the classes of the last domain look like others
    probes = probe_domains(moved.astype(np.float32), labels, domains, ("a", "b", "c"))
    assert probes[2].drop > 0.9
    distances = probe_distances(moved.astype(np.float32), labels, domains, 3)
    assert distances[0, 1] < 0.15
    assert distances[0, 2] == pytest.approx(1.0, abs=0.1)  # as far apart as two classes


def test_domains_without_a_shared_class_have_no_distance() -> None:
    features = numpy_generator(0, "tests/far").normal(size=(12, 4)).astype(np.float32)
    labels, domains = np.repeat(np.arange(4), 3), np.repeat(np.arange(2), 6)
    assert np.isnan(probe_distances(features, labels, domains, 2)[0, 1])
    assert probe_domains(features, labels, domains, ("a", "b")) == []


def test_the_probe_takes_whole_small_pairs() -> None:
    pairs = [0] * 100 + [1] * 5 + [2] * 3
    rows = probe_rows(range(108), pairs, most=20)
    assert len(rows) == 20
    assert sum(pairs[row] == 1 for row in rows) == 5
    assert sum(pairs[row] == 2 for row in rows) == 3
