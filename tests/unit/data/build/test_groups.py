"""Images that belong together: never in two splits, and as evenly over classes as groups allow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ltds.core.config import parse
from ltds.core.errors import ConfigError, DataError
from ltds.data.build.groups import draw_grouped_splits, group_notes
from ltds.data.build.stratify import draw_splits, split_counts
from ltds.data.datasets import folder, lists
from ltds.data.datasets.folder import FolderConfig
from ltds.data.datasets.list_files import ListsConfig
from ltds.data.datasets.raw import open_or_build, preview
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS, TEST, TRAIN, VAL

ROW = st.tuples(st.sampled_from("abc"), st.sampled_from("ns"), st.sampled_from(["", *"123456789"]))
SHARES = {"val": 0.1, "test": 0.2, "seed": 0}


def draw(
    groups: Sequence[str], classes: Sequence[str] | str = "a", domains: Sequence[str] | str = "n", **how: Any
) -> Any:
    """One letter stands for all images."""
    columns = [list(column) if len(column) > 1 else [*column] * len(groups) for column in (classes, domains)]
    return draw_grouped_splits(*columns, groups, **{**SHARES, **how})


def of_sizes(*sizes: int) -> list[str]:
    return [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]


@given(st.lists(ROW, max_size=60), st.integers(0, 5), st.sampled_from([0, 1, 3]))
def test_a_group_is_in_one_split_and_every_pair_is_trained_on(
    rows: list[tuple[str, str, str]], seed: int, most_test: int
) -> None:
    classes, domains, groups = ([row[i] for row in rows] for i in range(3))
    splits = draw_grouped_splits(classes, domains, groups, val=0.2, test=0.3, seed=seed, most_test=most_test)
    of_group: dict[str, set[int]] = defaultdict(set)
    of_pair: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for name, domain, group, split in zip(classes, domains, groups, splits.tolist(), strict=True):
        if group:
            of_group[group].add(split)
        of_pair[domain, name][split] += 1
    assert all(len(several) == 1 for several in of_group.values()), "also over domains"
    assert all(found[TRAIN] > 0 for found in of_pair.values())


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 5))
def test_equal_groups_of_one_class_are_shared_out_as_images_are(number: int, size: int, seed: int) -> None:
    splits = draw(of_sizes(*[size] * number), seed=seed)
    each = np.bincount(splits[::size], minlength=3).tolist()
    val_count, test_count = split_counts(number, 0.1, 0.2)
    assert each == [number - val_count - test_count, val_count, test_count]


@given(st.lists(st.integers(1, 200), min_size=8, max_size=60), st.integers(0, 5))
def test_shares_are_those_of_images(sizes: list[int], seed: int) -> None:
    """At most half of the largest group more than the share, unless no group is small enough."""
    shares = np.bincount(draw(of_sizes(*sizes), seed=seed), minlength=3) / sum(sizes)
    for split, share in ((VAL, 0.1), (TEST, 0.2)):
        assert 0 < shares[split] <= share + max(max(sizes) / 2, sorted(sizes)[2]) / sum(sizes)


def test_a_large_group_is_for_training() -> None:
    for seed in range(30):
        splits = draw(of_sizes(2, 150, 5), seed=seed)
        assert {*splits[2:152]} == {TRAIN}
        assert {splits[0], splits[-1]} == {VAL, TEST}
        assert {*draw(of_sizes(50, 2), seed=seed)[:50]} == {TRAIN}


def test_a_rare_class_is_drawn_before_those_it_occurs_with() -> None:
    """Every animal of the rare class was photographed with one of the frequent class, and in groups of their own."""
    groups = [*(f"both{i}" for i in range(10)), *(f"both{i}" for i in range(10)), *(f"one{i}" for i in range(40))]
    splits = draw(groups, ["rare"] * 10 + ["frequent"] * 50)
    assert np.bincount(splits[:10], minlength=3).tolist() == [7, 1, 2]
    assert np.bincount(splits[10:], minlength=3).tolist() == [35, 5, 10]


@pytest.mark.parametrize("most_test", [0, 10])
def test_a_frequent_class_in_every_group_costs_no_rare_class_its_test(most_test: int) -> None:
    """Thirty patients with twelve normal images each, and three of one of three lesions."""
    groups = [f"p{i}" for i in range(30) for _ in range(15)]
    classes = [name for i in range(30) for name in ["normal"] * 12 + [f"lesion{i % 3}"] * 3]
    for seed in range(20):
        splits = draw(groups, classes, most_test=most_test, seed=seed)
        for name in set(classes):
            rows = [i for i, other in enumerate(classes) if other == name]
            assert {*splits[rows]} == {TRAIN, VAL, TEST}, name


def test_a_pair_is_never_left_without_training_images() -> None:
    """Drawn alone, x would give A to the test or y would give B, and then c, which has only these, could have none."""
    for seed in range(50):
        splits = draw([*"AABBXY"], [*"cxcyxy"], val=0.0, test=0.5, seed=seed)
        assert TRAIN in splits[[0, 2]]
        assert sorted(splits[[1, 4]]) == sorted(splits[[3, 5]]) == [TRAIN, TEST]


def test_the_limit_of_test_images_counts_images() -> None:
    groups = of_sizes(*[4] * 20)
    counts = {most: np.count_nonzero(draw(groups, most_test=most) == TEST) for most in (0, 10, 8, 1)}
    assert counts == {0: 16, 10: 12, 8: 8, 1: 4}  # nearest to the limit; at least one group, or there would be no test


def test_draws_depend_on_the_seed_and_not_on_numbers_of_groups() -> None:
    groups, classes = of_sizes(*[3] * 20), ["ab"[i // 3 % 2] for i in range(60)]
    first = draw(groups, classes)
    assert (draw(groups, classes, seed=1) != first).any()
    assert (draw([f"other {group}" for group in groups], classes) == first).all()
    alone = draw([""] * 60, classes)
    assert np.bincount(alone).tolist() == np.bincount(draw_splits(classes, ["n"] * 60, **SHARES)).tolist()


@pytest.mark.parametrize("most_test", [0, 10])
def test_many_rare_classes_leave_half_of_a_frequent_one_for_training(most_test: int) -> None:
    """Thirty patients with twelve normal images each, and three of one of ten lesions: three patients a lesion."""
    groups = [f"p{i}" for i in range(30) for _ in range(15)]
    classes = [name for i in range(30) for name in ["normal"] * 12 + [f"lesion{i % 10}"] * 3]
    splits = draw(groups, classes, most_test=most_test)
    normal = [i for i, name in enumerate(classes) if name == "normal"]
    assert np.count_nonzero(splits[normal] == TRAIN) >= len(normal) / 2
    for lesion in range(10):
        rows = [i for i, name in enumerate(classes) if name == f"lesion{lesion}"]
        assert {TRAIN, TEST} <= {*splits[rows]}


def test_notes_name_groups_that_are_not_together_and_pairs_without_test() -> None:
    pairs = [*[("n", "cat")] * 4, *[("s", "cat")] * 3]
    groups = ["p1", "p1", "p2", "p2", "p2", "p3", ""]
    wandering = (
        "1 group has images in several domains: 'p2'. If such a group is one patient or scene, the test of a held-out "
        "domain contains what was trained on"
    )
    splits = ["train", "train", "test", "test", "test", "train", "train"]
    assert list(group_notes(pairs, groups, splits, drawn=True, tested=True)) == [
        "images of the same group are in the same split",
        "1 of 7 images belong to no group, and are drawn one by one",
        wandering,
    ]
    given = ["train", "val", *splits[2:]]
    assert list(group_notes(pairs, groups, given, drawn=False, tested=False)) == [
        "1 group has images in several splits: 'p1'. So validation, and the test of domains that are trained on, are "
        "too easy",
        wandering,
    ]
    none = ["train"] * 3
    assert list(group_notes(pairs[4:], groups[4:], none, drawn=True, tested=True))[2] == (
        "1 of 1 (domain, class) pairs with several images have none for test, because they have too few groups: "
        "'s / cat'"
    )
    assert len(list(group_notes(pairs[4:], groups[4:], none, drawn=True, tested=False))) == 2


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Two hospitals with eight patients each, who have three images of one class; deeper folders are patients."""
    for hospital in ("north", "south"):
        for patient in range(8):
            for i in range(3):
                file = tmp_path / "scans" / hospital / ("benign", "malignant")[patient % 2] / f"p{patient}" / f"{i}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (6, 6), "teal").save(file)
    return tmp_path / "scans"


def write_list(scans: Path, header: str = "path,class,domain,group") -> Path:
    lines = [header]
    for file in sorted(scans.rglob("*.png")):
        hospital, kind, patient, _ = file.relative_to(scans).parts
        lines.append(f"{file.relative_to(scans)},{kind},{hospital},{patient}")
    (scans / "scans.csv").write_text("\n".join(lines))
    return scans / "scans.csv"


def splits_of_patients(manifest: Manifest) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, domain, split in zip(manifest.paths, manifest.domain_ids, manifest.split_ids, strict=True):
        found[manifest.domains[domain], path.split("/")[-2]].add(SPLITS[split])
    return found


def test_a_list_with_groups_is_built_by_them(scans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself as by hand, and again without; a list without the column is built as before."""
    monkeypatch.setenv("LTDS_DATA", str(tmp_path / "data"))
    made = open_or_build(write_list(scans))
    assert all(len(several) == 1 for several in splits_of_patients(made).values())
    assert sorted(Counter(made.split_ids.tolist()).items()) == [(TRAIN, 24), (VAL, 12), (TEST, 12)]
    together, wandering = made.provenance["notes"]
    assert together == "images of the same group are in the same split"
    assert wandering.startswith("8 groups have images in several domains: 'p0', 'p2', 'p4', 'p6', 'p1' and 3 more. If ")
    assert open_or_build(scans / "scans.csv").root == made.root
    assert (preview(scans / "scans.csv").split_ids == made.split_ids).all()
    named = write_list(scans, "path,class,domain,Patient")
    renamed = lists.build(tmp_path / "named", scans, [named], parse(ListsConfig, {"group": "patient"}))
    assert renamed.provenance["group"] == "patient"
    assert all(len(several) == 1 for several in splits_of_patients(renamed).values())
    plain = lists.build(tmp_path / "plain", scans, [named], ListsConfig())
    assert plain.provenance["group"] is None
    with pytest.raises(DataError, match="empty or lists with these settings, but got one with other group"):
        lists.build(tmp_path / "named", scans, [named], parse(ListsConfig, {"group": ""}))
    assert any(len(several) > 1 for several in splits_of_patients(plain).values())
    with pytest.raises(DataError, match="to have a column 'person', but got"):
        lists.build(tmp_path / "none", scans, [named], parse(ListsConfig, {"group": "person"}))


def test_a_column_that_is_no_group_is_refused_or_left_out(scans: Path, tmp_path: Path) -> None:
    file = write_list(scans)
    lines = [line.split(",") for line in file.read_text().splitlines()[1:]]
    for number, values in enumerate([["study 1"] * 48, [line[2] for line in lines], [line[1] for line in lines]]):
        rows = [",".join([*line[:3], value]) for line, value in zip(lines, values, strict=True)]
        file.write_text("\n".join(["path,class,domain,group", *rows]))
        with pytest.raises(
            DataError, match="groups to be several for a class in a domain, but got none that can leave training"
        ):
            lists.build(tmp_path / "d", scans, [file], ListsConfig())
        without = lists.build(tmp_path / f"w{number}", scans, [file], parse(ListsConfig, {"group": ""}))
        assert {*without.split_ids.tolist()} == {TRAIN, VAL, TEST}
    as_class = lists.build(tmp_path / "c", scans, [file], parse(ListsConfig, {"label": "group"}))
    assert as_class.classes == ("benign", "malignant")
    assert {*as_class.split_ids.tolist()} == {TRAIN, VAL, TEST}
    with pytest.raises(ConfigError, match="another column than those of path, label"):
        parse(ListsConfig, {"label": "kind", "group": "Kind"})


def test_spellings_of_a_group_and_empty_cells(scans: Path, tmp_path: Path) -> None:
    file = write_list(scans)
    cells = ["Zoé  1", "Zoe\u0301 1", " Zoé 1 ", "nan", "", "N/A"] * 8
    lines = [line.rpartition(",")[0] for line in file.read_text().splitlines()[1:]]
    file.write_text("\n".join(["path,class,domain,group", *map(",".join, zip(lines, cells, strict=True))]))
    listed = lists.listed_images(scans, [file], ListsConfig())
    assert listed.groups == ["Zoé 1", "Zoé 1", "Zoé 1", "", "", ""] * 8
    file.write_text("\n".join(["path,class,domain,group", *(f"{line}," for line in lines)]))
    assert lists.listed_images(scans, [file], ListsConfig()).groups is None


def test_an_image_that_is_listed_twice_is_named_with_its_lines(scans: Path, tmp_path: Path) -> None:
    file = write_list(scans)
    file.write_text(file.read_text() + "\n" + file.read_text().splitlines()[3])
    with pytest.raises(DataError, match=r"line 50 of '.*scans\.csv' .* 'north/benign/p0/2\.png', which line 4 of"):
        lists.build(tmp_path / "d", scans, [file], ListsConfig())


def test_a_folder_is_grouped_by_its_paths(scans: Path, tmp_path: Path) -> None:
    config = parse(FolderConfig, {"deep": True, "group": r"/(p\d)/"})
    made = folder.build(tmp_path / "d", scans, config)
    assert all(len(several) == 1 for several in splits_of_patients(made).values())
    assert made.provenance["config"]["group"] == r"/(p\d)/"
    with pytest.raises(DataError, match=r"but got group='/\(p"):
        folder.build(tmp_path / "d", scans, FolderConfig(deep=True))
    assert "group" not in folder.build(tmp_path / "e", scans, FolderConfig(deep=True)).provenance["config"]
    assert folder.groups_by_path(["a_7.png", "a_8.png", "b.png"], r"\w_(\d)") == ["7", "8", ""]
    assert folder.groups_by_path(["a_7.png", "b.png"], r"^\w") == ["a", "b"]
    assert folder.groups_by_path(["a7.png", "b8.png", "8.png"], r"(a)?(\d)?") == ["a/7", "", "8"]
    with pytest.raises(DataError, match=r"no match in paths like 'north/benign/p0/0\.png'"):
        folder.build(tmp_path / "f", scans, parse(FolderConfig, {"deep": True, "group": "patient"}))
    with pytest.raises(ConfigError, match="a regular expression"):
        parse(FolderConfig, {"group": "("})


def test_given_splits_are_kept_and_divided_groups_named(scans: Path, tmp_path: Path) -> None:
    lines = write_list(scans).read_text().splitlines()
    splits = ["split", *(["train", "val", "test"] * 16)]
    file = scans / "given.csv"
    file.write_text("\n".join(f"{line},{split}" for line, split in zip(lines, splits, strict=True)))
    made = lists.build(tmp_path / "d", scans, [file], ListsConfig())
    assert made.split_ids.tolist() == [TRAIN, VAL, TEST] * 16
    assert made.provenance["notes"][0].startswith("8 groups have images in several splits: 'p0', ")
