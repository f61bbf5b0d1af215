"""A dataset to choose settings on: nothing of the domain, no test image, and the same image files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ltds
from ltds.core.errors import DataError
from ltds.core.symbolic_links import NoLinksError
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.loop import train
from other_disks import no_links
from toy import DOMAINS, TRAIN, recorded, toy_config, toy_session, write_dataset, write_linked_dataset


def rows_of(manifest: Manifest) -> set[tuple[str, str, str, str]]:
    columns = zip(manifest.paths, manifest.labels, manifest.domain_ids, manifest.split_ids, strict=True)
    return {(path, manifest.classes[c], manifest.domains[d], SPLITS[s]) for path, c, d, s in columns}


@pytest.mark.parametrize("domain", DOMAINS)
def test_it_has_the_training_and_validation_images_of_the_others(tmp_path: Path, domain: str) -> None:
    whole = write_dataset(tmp_path / "toy")
    smaller = ltds.without_domain(whole.root, domain, out=tmp_path / "smaller")
    left = np.delete(TRAIN, DOMAINS.index(domain), axis=0).sum(axis=0) > 0
    assert smaller.domains == tuple(name for name in DOMAINS if name != domain)
    assert smaller.classes == tuple(name for name, kept in zip(whole.classes, left, strict=True) if kept)
    assert rows_of(smaller) == {r for r in rows_of(whole) if r[2] != domain and r[3] != "test"}
    (note,) = smaller.provenance["notes"]
    assert note == f"without the domain '{domain}' and without the test split: to choose settings for it"
    for path in smaller.paths:
        assert (smaller.root / path).read_bytes() == (whole.root / path).read_bytes()


def test_a_held_out_domain_is_tested_on_all_of_its_images(tmp_path: Path) -> None:
    whole = write_dataset(tmp_path / "toy")
    smaller = ltds.without_domain(whole, "wax", out=tmp_path / "smaller")
    session = toy_session(smaller, "dc", data={"held_out": "oil"})
    train(session, run := recorded(session, tmp_path / "run"))
    metrics = run.read_metrics()
    assert metrics["per_domain"]["oil"]["known_images"] == 8 + 5 + 3 + 3 * 2, "of ant, bee and dog, with validation"
    assert metrics["summary"]["acc_u"] is not None
    assert "wax" not in metrics["per_domain"]


def test_embeddings_are_a_copy(tmp_path: Path) -> None:
    """A table that is made for the smaller dataset must not appear in the other one."""
    whole = write_dataset(tmp_path / "toy")
    smaller = ltds.without_domain(whole, "ink", out=tmp_path / "smaller")
    session = toy_session(smaller, "ltds", data={"held_out": "oil"}, method={"meta_test_domains": 0})
    assert session.method is not None
    (smaller.root / "semantics" / "mine.csv").write_text("class,a\n", encoding="utf-8")
    assert not (whole.root / "semantics" / "mine.csv").exists()


def test_links_lead_to_the_images_themselves(tmp_path: Path) -> None:
    """Not to a link of the other dataset, which may be deleted."""
    images, data = write_linked_dataset(tmp_path)
    smaller = ltds.without_domain(data, "ink", out=tmp_path / "deep" / "smaller")
    assert (smaller.root / "source").readlink() == images.root.resolve()
    assert sorted(file.name for file in smaller.root.iterdir()) == ["manifest.csv", "manifest.json", "source"]
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["smaller"], "nothing unfinished is left"


def test_what_was_said_of_the_dataset_stays_true(tmp_path: Path) -> None:
    """Its name and settings, by which its recipe is found, and its notes; but not numbers of its images."""
    said = {"config": {"size": 16}, "notes": ["drawn"], "facts": {"images_found": 99}}
    whole = replace(write_dataset(tmp_path / "toy"), name="bestiary", provenance=said)
    smaller = ltds.without_domain(whole, "ink", out=tmp_path / "smaller")
    assert smaller.name == "bestiary"
    assert smaller.provenance["config"] == {"size": 16}
    assert [note.split(" ")[0] for note in smaller.provenance["notes"]] == ["drawn", "without"]
    assert "facts" not in smaller.provenance


@pytest.mark.parametrize(
    ("domain", "message"),
    [("wex", "Expected a domain of 'toy', but got 'wex'. Did you mean 'wax'?"), ("", "Expected a domain of 'toy'")],
)
def test_an_unknown_domain(tmp_path: Path, domain: str, message: str) -> None:
    whole = write_dataset(tmp_path / "toy")
    with pytest.raises(DataError, match=message):
        ltds.without_domain(whole, domain, out=tmp_path / "smaller")
    assert not (tmp_path / "smaller").exists()


def test_two_domains_are_too_few(tmp_path: Path) -> None:
    two = ltds.without_domain(write_dataset(tmp_path / "toy"), "wax", out=tmp_path / "two")
    message = "domains of 'toy' with training images, besides 'oil', to be two or more: .* but got ink"
    with pytest.raises(DataError, match=message):
        ltds.without_domain(two, "oil", out=tmp_path / "one")


def test_domains_without_training_images_take_no_part(tmp_path: Path) -> None:
    """They cannot be trained on when another domain is held out, as the target of PACS-ODG."""
    whole = write_dataset(tmp_path / "toy")
    tested = whole.split_ids == SPLITS.index("test")
    target = replace(whole, domains=(*whole.domains, "new"), domain_ids=np.where(tested, 3, whole.domain_ids))
    assert ltds.without_domain(target, "ink", out=tmp_path / "smaller").domains == ("oil", "wax")
    only_tested = replace(whole, split_ids=np.where(whole.domain_ids == 1, SPLITS.index("test"), whole.split_ids))
    with pytest.raises(DataError, match="but got ink"):
        ltds.without_domain(only_tested, "wax", out=tmp_path / "other")


def test_training_images_that_are_tested_again_stay(tmp_path: Path) -> None:
    """As in PACS-ODG, whose test split repeats the training images of the sources."""
    whole = write_dataset(tmp_path / "toy")
    again = whole.rows("train")
    repeated = replace(
        whole,
        paths=(*whole.paths, *(whole.paths[i] for i in again)),
        labels=np.append(whole.labels, whole.labels[again]),
        domain_ids=np.append(whole.domain_ids, whole.domain_ids[again]),
        split_ids=np.append(whole.split_ids, np.full(len(again), SPLITS.index("test"))),
        test_repeats=True,
    )
    smaller = ltds.without_domain(repeated, "wax", out=tmp_path / "smaller")
    assert rows_of(smaller) == {r for r in rows_of(whole) if r[2] != "wax" and r[3] != "test"}
    assert not smaller.test_repeats
    assert smaller.whole_held_out


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    whole = write_dataset(tmp_path / "toy")
    (tmp_path / "mine").mkdir()
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for out in ("mine", "notes.txt", "link"):
        with pytest.raises(DataError, match="to be a new folder, but got one that exists"):
            ltds.without_domain(whole, "wax", out=tmp_path / out)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_odd_folders(tmp_path: Path) -> None:
    """Paths that begin with './', images below 'semantics', a link to nothing there, and an `out` inside of it."""
    whole = write_dataset(tmp_path / "toy")
    (whole.root / "semantics" / "gone.csv").symlink_to(tmp_path / "gone")
    dotted = replace(whole, paths=tuple(f"./{path}" for path in whole.paths))
    smaller = ltds.without_domain(dotted, "wax", out=whole.root / "semantics" / "smaller")
    assert all((smaller.root / path).is_file() for path in smaller.paths)
    assert [file.name for file in (smaller.root / "semantics").iterdir()] == ["attributes.csv"]
    (whole.root / "images").rename(whole.root / "semantics" / "images")
    moved = replace(whole, paths=tuple(f"semantics/{path}" for path in whole.paths))
    smaller = ltds.without_domain(moved, "wax", out=tmp_path / "smaller")
    assert all((smaller.root / path).is_file() for path in smaller.paths)


def test_paths_outside_the_dataset_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_dataset(tmp_path / "toy")
    moved = replace(whole, root=tmp_path / "list", paths=tuple(f"../toy/{path}" for path in whole.paths))
    with pytest.raises(DataError, match="to be below its folder"):
        ltds.without_domain(moved, "wax", out=tmp_path / "smaller")
    absolute = replace(moved, paths=tuple(str(whole.root / path) for path in whole.paths))
    monkeypatch.setenv("LTDS_OUTSIDE", str(whole.root))
    smaller = ltds.without_domain(absolute, "wax", out=tmp_path / "smaller")
    assert toy_config(smaller).data.root == str(tmp_path / "smaller")
    assert all(Path(path).is_file() for path in smaller.paths)


def test_a_disk_without_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_dataset(tmp_path / "toy")
    monkeypatch.setattr(os, "symlink", no_links)
    with pytest.raises(NoLinksError, match=r"'.*' to be on a disk that can hold symbolic links, .*Choose another fol"):
        ltds.without_domain(whole, "wax", out=tmp_path / "smaller")
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]
