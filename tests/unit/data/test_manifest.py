"""The manifest: written, read back, and every way it can be wrong said in plain words."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ltds.core.errors import DataError
from ltds.data.manifest import Manifest

CLASSES, DOMAINS = ("ant", "bee", "cat"), ("photo", "sketch")
# path, label, domain, split (train, val, test); 'cat' lives in 'sketch' only.
ROWS = [
    ("p/0.png", 0, 0, 0),
    ("p/1.png", 0, 0, 0),
    ("p/2.png", 1, 0, 0),
    ("p/3.png", 1, 0, 1),
    ("p/4.png", 2, 0, 2),
    ("s/0.png", 0, 1, 0),
    ("s/1.png", 2, 1, 0),
    ("s/2.png", 2, 1, 0),
    ("s/3.png", 0, 1, 2),
]


def manifest(root: Path, rows: list[tuple[str, int, int, int]] = ROWS) -> Manifest:
    paths, *columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    arrays = [np.array(column, dtype=np.int64) for column in columns]
    return Manifest(root, "zoo", CLASSES, DOMAINS, paths, *arrays, licence="CC0-1.0", provenance={"made": "here"})


def written(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    manifest(root).write()
    return root


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def without_checksum(root: Path) -> None:
    header = json.loads((root / "manifest.json").read_text())
    del header["checksum"]
    (root / "manifest.json").write_text(json.dumps(header))


def test_reading_gives_what_was_written(tmp_path: Path) -> None:
    before, after = manifest(tmp_path), Manifest.read(written(tmp_path))
    assert (after.root, after.name, after.classes, after.domains) == (tmp_path, "zoo", CLASSES, DOMAINS)
    assert after.paths == before.paths
    for column in ("labels", "domain_ids", "split_ids"):
        np.testing.assert_array_equal(getattr(after, column), getattr(before, column))
    assert (after.licence, after.provenance, after.checksum) == ("CC0-1.0", {"made": "here"}, before.checksum)


def test_names_with_commas_quotes_and_umlauts_survive(tmp_path: Path) -> None:
    rows = [('a,"b"/ü.png', 0, 0, 0), ("b.png", 1, 0, 0), ("c.png", 2, 1, 0)]
    odd = replace(manifest(tmp_path, rows), classes=('big, "red" ant', "Bär", "cat"))
    odd.write()
    assert Manifest.read(tmp_path).paths == odd.paths
    assert Manifest.read(tmp_path).classes == odd.classes


def test_rows_counts_and_checksum(tmp_path: Path) -> None:
    data = manifest(tmp_path)
    assert len(data) == 9
    assert data.rows("train").tolist() == [0, 1, 2, 5, 6, 7]
    assert data.rows("train", "sketch").tolist() == [5, 6, 7]
    assert data.rows("val", "sketch").tolist() == []
    assert data.counts("train").tolist() == [[2, 1, 0], [1, 0, 2]]
    assert data.counts("test").tolist() == [[0, 0, 1], [1, 0, 0]]
    for changed in (ROWS[::-1], [("p/9.png", 0, 0, 0), *ROWS[1:]], [("p/0.png", 1, 0, 0), *ROWS[1:]]):
        assert manifest(tmp_path, changed).checksum != data.checksum


def test_task_leaves_the_held_out_domain_out(tmp_path: Path) -> None:
    task = manifest(tmp_path).task("sketch")
    assert task.sources == ("photo",)
    assert task.counts.tolist() == [[2, 1, 0]]
    assert task.open_classes == (2,)
    everything = manifest(tmp_path).task(None)
    assert everything.sources == DOMAINS
    assert everything.counts.tolist() == [[2, 1, 0], [1, 0, 2]]
    assert everything.open_classes == ()


def test_held_out_domain_that_does_not_exist(tmp_path: Path) -> None:
    sentence = r"^Expected a domain of 'zoo', but got 'sketsh'\. Did you mean 'sketch'\? Choices: photo, sketch\.$"
    with pytest.raises(DataError, match=sentence):
        manifest(tmp_path).task("sketsh")


def test_source_domain_without_training_images(tmp_path: Path) -> None:
    rows = [(p, y, 0 if s == 0 else d, s) for p, y, d, s in ROWS]
    with pytest.raises(DataError, match=r"training images, but got none for sketch\. Set data.held_out to that domain"):
        manifest(tmp_path, rows).task(None)


def test_missing_dataset_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^Expected a dataset folder at '.*/none', but there is none\. Build the one"):
        Manifest.read(tmp_path / "none")


def test_missing_manifest_json(tmp_path: Path) -> None:
    (written(tmp_path) / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"but got no manifest\.json\. If its build was interrupted, run 'ltds data"):
        Manifest.read(tmp_path)


def test_missing_manifest_csv(tmp_path: Path) -> None:
    (written(tmp_path) / "manifest.csv").unlink()
    with pytest.raises(DataError, match=r"manifest\.csv' to exist, but it does not\. Run 'ltds data build' again"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"), [("{", "to be valid JSON"), ('{"name": "x"}', "'classes' has no value. Correct")]
)
def test_broken_manifest_json(tmp_path: Path, text: str, sentence: str) -> None:
    (written(tmp_path) / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=sentence):
        Manifest.read(tmp_path)


def test_edited_csv(tmp_path: Path) -> None:
    edit(written(tmp_path) / "manifest.csv", "p/1.png,ant", "p/1.png,bee")
    sentence = r"manifest\.csv' to match the checksum in manifest\.json \(\w{12}\.\.\.\), but got \w{12}\.\.\.\. If you"
    with pytest.raises(DataError, match=sentence):
        Manifest.read(tmp_path)
    without_checksum(tmp_path)  # the remedy the sentence names
    assert Manifest.read(tmp_path).labels.tolist() == [0, 1, 1, 1, 2, 0, 2, 2, 0]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("p/2.png,bee,", "p/2.png,be,", r"line 4: unknown class 'be'\. Did you mean 'bee'\? Choices: ant, bee, cat\."),
        ("ant,sketch,", "ant,sketc,", r"line 7: unknown domain 'sketc'\. Did you mean 'sketch'\? Choices: photo, sk"),
        ("photo,val", "photo,valid", r"line 5: unknown split 'valid'\. Did you mean 'val'\? Choices: test, train, v"),
        ("p/0.png,ant,photo,train", "p/0.png,ant,photo", "line 2: expected 4 columns, but got 3"),
        ("path,class,domain,split", "path,label,domain,split", "first line .* 'path,class,domain,split', but got 'pa"),
    ],
)
def test_bad_lines_are_named_with_the_nearest_choice(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    edit(written(tmp_path) / "manifest.csv", old, new)
    with pytest.raises(DataError, match=sentence):
        Manifest.read(tmp_path)


def test_all_bad_lines_come_in_one_error(tmp_path: Path) -> None:
    file = written(tmp_path) / "manifest.csv"
    edit(file, "p/2.png,bee,", "p/2.png,be,")
    edit(file, "photo,val", "photo,valid")
    with pytest.raises(DataError) as caught:
        Manifest.read(tmp_path)
    assert len(str(caught.value).splitlines()) == 3


def test_of_many_problems_ten_are_shown(tmp_path: Path) -> None:
    rows = [(f"{i}.png", 9, 0, 0) for i in range(12)]
    with pytest.raises(DataError) as caught:
        manifest(tmp_path, rows)
    lines = str(caught.value).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "- ... and 2 more"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "it has no rows"),
        ([*ROWS, ("x.png", 3, 0, 0)], r"row 9 \(x\.png\): expected a label in 0\.\.2, but got 3"),
        ([*ROWS, ("x.png", -1, 0, 0)], r"row 9 \(x\.png\): expected a label in 0\.\.2, but got -1"),
        ([*ROWS, ("x.png", 0, 2, 0)], r"row 9 \(x\.png\): expected a domain in 0\.\.1, but got 2"),
        ([*ROWS, ("x.png", 0, 0, 3)], r"row 9 \(x\.png\): expected a split in 0\.\.2, but got 3"),
        ([*ROWS, ROWS[1]], r"rows 1 and 9 are the same file 'p/1\.png'; delete one"),
        ([r for r in ROWS if r[1] != 2], "class 'cat' has no image in any split; add images or take it out"),
        (
            [("p/2.png", 1, 0, 2) if r[0] == "p/2.png" else r for r in ROWS],
            "class 'bee' has validation images but no training image in any domain; move some to 'train'",
        ),
    ],
)
def test_rows_that_cannot_be_used(tmp_path: Path, rows: list[tuple[str, int, int, int]], sentence: str) -> None:
    with pytest.raises(DataError, match=r"(?s)^The manifest 'zoo' cannot be used:.*" + sentence):
        manifest(tmp_path, rows)


def test_names_that_come_twice_and_columns_of_unequal_length(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="class names must be unique, but 'ant' comes twice"):
        replace(manifest(tmp_path), classes=("ant", "ant", "cat"))
    with pytest.raises(DataError, match="domain names must be unique, but 'photo' comes twice"):
        replace(manifest(tmp_path), domains=("photo", "photo"))
    with pytest.raises(DataError, match=r"equally long, but have \[8, 9\] rows"):
        replace(manifest(tmp_path), labels=np.zeros(8, dtype=np.int64))


def test_a_test_row_may_repeat_a_file_only_where_the_manifest_says_so(tmp_path: Path) -> None:
    again = [*ROWS, ("p/0.png", 0, 0, 2), ("./p/3.png", 1, 0, 2)]
    with pytest.raises(DataError, match=r"rows 0 and 9 are the same file 'p/0\.png'"):
        manifest(tmp_path, again)
    plain = manifest(tmp_path)
    assert plain.test_images_also_in("train").tolist() == [0, 0]
    columns = [np.array([row[i] for row in again], np.int64) for i in (1, 2, 3)]
    names = tuple(row[0] for row in again)
    repeated = Manifest(tmp_path, "zoo", CLASSES, DOMAINS, names, *columns, test_repeats=True)
    assert repeated.test_images_also_in("train").tolist() == [1, 0]
    assert repeated.test_images_also_in("val").tolist() == [1, 0]
    repeated.write()
    read = Manifest.read(tmp_path)
    assert read.test_repeats
    assert read.checksum == repeated.checksum


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("p/1.png", 0, 0, 0), "rows 1 and 9 are the same file"),
        (("s/3.png", 0, 1, 2), "rows 8 and 9 are the same file"),
        (("p/3.png", 1, 0, 0), "rows 3 and 9 are the same file"),
        (("p/0.png", 1, 0, 2), "rows 0 and 9 give the file 'p/0.png' two classes or domains"),
        (("p/0.png", 0, 1, 2), "rows 0 and 9 give the file 'p/0.png' two classes or domains"),
    ],
)
def test_repeats_have_limits(tmp_path: Path, row: tuple[str, int, int, int], said: str) -> None:
    rows = [*ROWS, row]
    columns = [np.array([r[i] for r in rows], np.int64) for i in (1, 2, 3)]
    with pytest.raises(DataError, match=said):
        Manifest(tmp_path, "zoo", CLASSES, DOMAINS, tuple(r[0] for r in rows), *columns, test_repeats=True)


def test_a_large_manifest_is_read_in_well_under_a_second(tmp_path: Path) -> None:
    rows, classes = 170_000, tuple(f"n{c:08d}" for c in range(1000))
    ids = np.arange(rows, dtype=np.int64)
    paths = tuple(f"images/hayao/train/{classes[i % 1000]}/{i}.JPEG" for i in range(rows))
    Manifest(tmp_path, "large", classes, ("a", "b", "c"), paths, ids % 1000, ids % 3, ids * 0).write()
    start = time.process_time()
    assert len(Manifest.read(tmp_path)) == rows
    assert time.process_time() - start < 1.0  # seconds of this process alone; 0.3 where it was written


def test_two_sizes_of_a_built_dataset_are_two_datasets(dataset: Callable[..., Manifest]) -> None:
    plain = dataset()
    assert plain.identity == plain.checksum, "a dataset made by hand is its rows"
    small, large = (replace(plain, provenance={"builder": "bestiary", "config": {"size": s}}) for s in (32, 64))
    assert small.checksum == large.checksum
    assert small.identity != large.identity
    assert small.identity == replace(small, provenance={**small.provenance, "notes": ["built twice"]}).identity


@pytest.mark.parametrize("own", ["NFC", "NFD"])
def test_a_domain_is_found_in_the_other_encoding_of_its_accents(tmp_path: Path, own: str) -> None:
    name, other = (unicodedata.normalize(form, "Zürich") for form in (own, "NFC" if own == "NFD" else "NFD"))
    assert name != other
    data = replace(manifest(tmp_path), domains=("Bern", name))
    assert [data.own_spelling(domain) for domain in (name, other, "Bern", "Basel", "")] == [
        name,
        name,
        "Bern",
        "Basel",
        "",
    ]
    assert data.domain_index(other) == 1
    np.testing.assert_array_equal(data.rows("train", other), data.rows("train", name))
    assert (data.task(other).held_out, data.task(other).sources) == (name, ("Bern",))
    both = replace(data, domains=(other, name))
    assert (both.domain_index(other), both.domain_index(name)) == (0, 1), "two names remain two"


def test_what_holds_arrays_can_be_compared(tmp_path: Path) -> None:
    """By what it is, not by its arrays, whose comparison is no truth value."""
    data = manifest(tmp_path)
    assert data == data
    assert data != replace(data)
    assert data.task(None) != data.task(None)
    assert {data, data} == {data}
