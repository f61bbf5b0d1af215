"""Images that belong together: never in two splits, and as evenly over classes as groups allow."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

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
from ltds.data.datasets.lists import ListsConfig
from ltds.data.datasets.raw import open_or_build, preview
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS, TEST, TRAIN, VAL

ROW = st.tuples(st.sampled_from("abc"), st.sampled_from("ns"), st.sampled_from(["", *"123456789"]))


@given(st.lists(ROW, max_size=60), st.integers(0, 5), st.sampled_from([0, 1, 3]))
def test_a_group_is_in_one_split_and_every_pair_is_trained_on(
    rows: list[tuple[str, str, str]], seed: int, most_test: int
) -> None:
    classes, domains, groups = ([row[i] for row in rows] for i in range(3))
    splits = draw_grouped_splits(classes, domains, groups, val=0.2, test=0.3, seed=seed, most_test=most_test)
    of_group: dict[tuple[str, str], set[int]] = defaultdict(set)
    of_pair: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for name, domain, group, split in zip(classes, domains, groups, splits.tolist(), strict=True):
        if group:
            of_group[domain, group].add(split)
        of_pair[domain, name][split] += 1
    assert all(len(several) == 1 for several in of_group.values())
    assert all(found[TRAIN] > 0 for found in of_pair.values())


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.integers(0, 5))
def test_groups_of_one_class_are_shared_out_as_images_are(sizes: list[int], seed: int) -> None:
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    n = len(groups)
    splits = draw_grouped_splits(["cat"] * n, ["n"] * n, groups, val=0.1, test=0.2, seed=seed)
    each = Counter(dict(zip(groups, splits.tolist(), strict=True)).values())
    assert (each[VAL], each[TEST]) == split_counts(len(sizes), 0.1, 0.2)


def test_a_rare_class_is_drawn_before_those_it_occurs_with() -> None:
    """Every animal of the rare class was photographed with one of the frequent class, and in groups of their own."""
    groups = [*(f"both{i}" for i in range(10)), *(f"both{i}" for i in range(10)), *(f"one{i}" for i in range(40))]
    classes = ["rare"] * 10 + ["frequent"] * 50
    splits = draw_grouped_splits(classes, ["n"] * 60, groups, val=0.1, test=0.2, seed=0)
    assert np.bincount(splits[:10], minlength=3).tolist() == [7, 1, 2]
    assert np.bincount(splits[10:], minlength=3).tolist() == [35, 5, 10]


def test_a_pair_is_never_left_without_training_images() -> None:
    """Drawn alone, x would give A to the test or y would give B, and then c, which has only these, could have none."""
    for seed in range(50):
        splits = draw_grouped_splits([*"cxcyxy"], ["n"] * 6, [*"AABBXY"], val=0.0, test=0.5, seed=seed)
        assert TRAIN in splits[[0, 2]]
        assert sorted(splits[[1, 4]]) == sorted(splits[[3, 5]]) == [TRAIN, TEST]


def test_the_limit_of_test_images_counts_images() -> None:
    groups = [f"g{i // 4}" for i in range(80)]  # 20 groups of four
    counts = {
        most: np.count_nonzero(
            draw_grouped_splits(["a"] * 80, ["n"] * 80, groups, val=0.1, test=0.2, seed=0, most_test=most) == TEST
        )
        for most in (0, 10, 8, 1)
    }
    assert counts == {0: 16, 10: 8, 8: 8, 1: 4}  # a single group may be larger, or there would be no test


def test_the_draw_of_a_domain_is_its_own_and_depends_on_the_seed() -> None:
    n, groups = 60, [f"g{i // 3}" for i in range(60)]
    classes = ["ab"[i // 3 % 2] for i in range(n)]
    first = draw_grouped_splits(classes, ["n"] * n, groups, val=0.1, test=0.2, seed=0)
    both = draw_grouped_splits(classes * 2, ["a"] * n + ["n"] * n, groups * 2, val=0.1, test=0.2, seed=0)
    assert (both[n:] == first).all()
    assert (both[:n] != first).any(), "each domain has a draw of its own"
    assert (draw_grouped_splits(classes, ["n"] * n, groups, val=0.1, test=0.2, seed=1) != first).any()
    ungrouped = draw_grouped_splits(classes, ["n"] * n, [""] * n, val=0.1, test=0.2, seed=0)
    plain = draw_splits(classes, ["n"] * n, val=0.1, test=0.2, seed=0)
    assert np.bincount(ungrouped).tolist() == np.bincount(plain).tolist()


def test_notes_name_groups_that_are_not_together() -> None:
    domains, groups = [*"nnnnsss"], ["p1", "p1", "p2", "p2", "p2", "p3", ""]
    assert list(group_notes(domains[:4], groups[:4], ["train"] * 4)) == ["4 images belong to 2 groups"]
    splits = ["train", "val", "test", "test", "train", "train", "train"]
    assert list(group_notes(domains, groups, splits)) == [
        "6 images belong to 4 groups, 1 to none",
        "1 group has images in several splits: 'p1'. Validation, and the test of domains that are trained on, show "
        "what was trained on",
        "1 group has images in several domains: 'p2'. If such a group is one patient or scene, the test of a "
        "held-out domain shows what was trained on",
    ]


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
    assert together == "48 images belong to 16 groups"
    assert wandering.startswith("8 groups have images in several domains: 'p0', 'p2', 'p4', 'p6', 'p1' and 3 more. If ")
    assert open_or_build(scans / "scans.csv").root == made.root
    assert (preview(scans / "scans.csv").split_ids == made.split_ids).all()
    named = write_list(scans, "path,class,domain,Patient")
    renamed = lists.build(tmp_path / "named", scans, [named], parse(ListsConfig, {"group": "patient"}))
    assert renamed.provenance["group"] == "patient"
    assert all(len(several) == 1 for several in splits_of_patients(renamed).values())
    plain = lists.build(tmp_path / "plain", scans, [named], ListsConfig())
    assert "group" not in {**plain.provenance, **plain.provenance["config"]}
    assert any(len(several) > 1 for several in splits_of_patients(plain).values())
    with pytest.raises(DataError, match="to have a column 'person', but got"):
        lists.build(tmp_path / "none", scans, [named], parse(ListsConfig, {"group": "person"}))


def test_a_folder_is_grouped_by_its_paths(scans: Path, tmp_path: Path) -> None:
    config = parse(FolderConfig, {"deep": True, "group": r"/(p\d)/"})
    made = folder.build(tmp_path / "d", scans, config)
    assert all(len(several) == 1 for several in splits_of_patients(made).values())
    assert made.provenance["config"]["group"] == r"/(p\d)/"
    assert "group" not in folder.build(tmp_path / "e", scans, FolderConfig(deep=True)).provenance["config"]
    assert folder.groups_by_path(["a_7.png", "a_8.png", "b.png"], r"\w_(\d)") == ["7", "8", ""]
    assert folder.groups_by_path(["a_7.png", "b.png"], r"^\w") == ["a", "b"]
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
    assert made.provenance["notes"][1].startswith("16 groups have images in several splits: 'p0', ")
