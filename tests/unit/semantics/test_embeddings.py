"""ClassEmbeddings: scaling, order, matching of names, every file type, and what is refused."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.core.errors import DataError
from ltds.semantics.embeddings import ClassEmbeddings, rows_without

NAMES = ("grizzly+bear", "fox", "Killer whale")
ROWS = np.array([[3.0, 4.0], [0.0, -2.0], [1.0, 0.0]])
UNIT = torch.tensor([[0.6, 0.8], [0.0, -1.0], [1.0, 0.0]])


def test_rows_are_scaled_to_unit_length_once():
    embeddings = ClassEmbeddings(NAMES, torch.from_numpy(ROWS), {"model": "by hand"})
    assert_close(embeddings.vectors, UNIT)
    assert embeddings.vectors.dtype == torch.float32
    assert embeddings.width == 2
    random = ClassEmbeddings(NAMES, torch.randn(3, 300))
    assert torch.equal(ClassEmbeddings(NAMES, random.vectors).vectors, random.vectors)  # bit for bit


def test_aligned_to_orders_subsets_and_matches_loosely():
    embeddings = ClassEmbeddings(NAMES, torch.from_numpy(ROWS), {"model": "by hand"})
    aligned = embeddings.aligned_to(["killer_whale", "grizzly bear"])
    assert aligned.names == ("killer_whale", "grizzly bear")
    assert_close(aligned.vectors, UNIT[[2, 0]])
    assert aligned.provenance == {"model": "by hand"}


def test_an_exact_name_goes_before_a_loose_one():
    embeddings = ClassEmbeddings(("a b", "a_b"), torch.eye(2))
    assert_close(embeddings.aligned_to(["a_b", "a b"]).vectors, torch.eye(2)[[1, 0]])
    with pytest.raises(DataError, match="none for 'A-B'"):
        embeddings.aligned_to(["A-B"])  # either could be meant


def test_missing_classes_are_named_with_the_nearest():
    embeddings = ClassEmbeddings(NAMES, torch.from_numpy(ROWS))
    with pytest.raises(DataError, match=r"none for 'foxes' \(nearest: 'fox'\), 'zebra'\."):
        embeddings.aligned_to(["foxes", "fox", "zebra"])


@pytest.mark.parametrize(
    ("names", "rows", "message"),
    [
        (("a", "b", "a"), ROWS, "unique, but got repeated: a"),
        (("a", "b"), ROWS, r"a table of 2 rows, one per name, but got \(3, 2\)"),
        (("a", "b", "c"), ROWS[:, 0], "a table of 3 rows"),
        (("a", "b", "c"), np.array([[1.0, np.nan], [1, 1], [np.inf, 0]]), "NaN or inf for a, c"),
        (("a", "b", "c"), np.array([[1.0, 0], [0, 0], [0, 1]]), "zero for b"),
    ],
)
def test_unusable_tables_are_refused(names, rows, message):
    with pytest.raises(DataError, match=message):
        ClassEmbeddings(names, torch.from_numpy(rows))


def write(tmp_path, kind):
    file = tmp_path / f"table.{kind}"
    if kind == "csv":
        lines = [f"{name},{a},{b}" for name, (a, b) in zip(NAMES, ROWS, strict=True)]
        file.write_text("class,x,y\n" + "\n".join(lines) + "\n")
    elif kind == "npy":
        np.save(file, ROWS)
        file.with_suffix(".txt").write_text("\n".join(NAMES) + "\n")
    elif kind == "npz":
        np.savez(file, vectors=ROWS, class_names=np.array(NAMES))
    else:
        io = pytest.importorskip("scipy.io")
        cells = np.array([[name] for name in NAMES], dtype=object)
        io.savemat(file, {"att": ROWS.T, "allclasses_names": cells})
    return file


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "mat"])
def test_reads_every_file_type(tmp_path, kind):
    embeddings = ClassEmbeddings.from_table(write(tmp_path, kind))
    assert embeddings.names == NAMES
    assert_close(embeddings.vectors, UNIT)
    assert embeddings.provenance["file"] == f"table.{kind}"


def test_several_arrays_need_a_key(tmp_path):
    file = tmp_path / "two.npz"
    np.savez(file, glove=ROWS, minilm=ROWS[:, :1] + 5, class_names=np.array(NAMES))
    with pytest.raises(DataError, match="Choices: glove, minilm"):
        ClassEmbeddings.from_table(file)
    with pytest.raises(DataError, match="Did you mean 'glove'"):
        ClassEmbeddings.from_table(file, key="gloves")
    assert_close(ClassEmbeddings.from_table(file, key="glove").vectors, UNIT)


def test_names_can_be_given(tmp_path):
    file = tmp_path / "bare.npy"
    np.save(file, ROWS)
    with pytest.raises(DataError, match=r"Write one per line into 'bare\.txt'"):
        ClassEmbeddings.from_table(file)
    assert ClassEmbeddings.from_table(file, names=["a", "b", "c"]).names == ("a", "b", "c")
    with pytest.raises(DataError, match="a matrix of 2 rows"):
        ClassEmbeddings.from_table(file, names=["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class,x\na,1\nb,many\n", "line 3 of .* a class and 1 finite numbers, but got 'b,many'"),
        ("class,x\na,1\nb,nan\n", "line 3 of .* but got 'b,nan'"),
        ("class,x,y\na,1,2\n\nb,3\n", "line 4 of .* a class and 2 finite numbers, but got 'b,3'"),
        ("class\na\n", "a header and one line per class"),
        ("", "a header and one line per class"),
    ],
)
def test_bad_csv_names_the_line(tmp_path, text, message):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        ClassEmbeddings.from_table(file)


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "mat"])
@pytest.mark.parametrize("keep", [0, 20, 0.5, -1])
def test_damaged_files_are_refused_by_name(tmp_path, kind, keep):
    file = write(tmp_path, kind)
    whole = file.read_bytes()
    file.write_bytes(b"\xff\xfe not a table" if keep == -1 else whole[: int(keep * len(whole)) if keep < 1 else keep])
    with pytest.raises(DataError, match=f"table.{kind}'"):
        ClassEmbeddings.from_table(file)


def test_pickled_objects_are_never_loaded(tmp_path):
    file = tmp_path / "objects.npz"
    np.savez(file, vectors=ROWS, class_names=np.array(NAMES, dtype=object))
    with pytest.raises(DataError, match=r"plain numbers and texts.* the names as strings, not objects"):
        ClassEmbeddings.from_table(file)
    np.save(tmp_path / "text.npy", np.array([["1", "2"]]))
    with pytest.raises(DataError, match="a matrix of numbers, but got of <U1"):
        ClassEmbeddings.from_table(tmp_path / "text.npy", names=["a"])


def test_a_csv_with_an_endless_cell_is_refused(tmp_path):
    (tmp_path / "long.csv").write_text(f"class,x\na,{'1' * 200_000}\n")
    with pytest.raises(DataError, match="field larger than field limit"):
        ClassEmbeddings.from_table(tmp_path / "long.csv")


def test_names_may_be_byte_strings(tmp_path):
    np.savez(tmp_path / "bytes.npz", vectors=ROWS, class_names=np.array(NAMES, dtype="S"))
    assert ClassEmbeddings.from_table(tmp_path / "bytes.npz").names == NAMES


def test_unknown_types_and_missing_files(tmp_path):
    with pytest.raises(DataError, match=r"one of \.csv, \.npy, \.npz, \.mat"):
        ClassEmbeddings.from_table(tmp_path / "table.pkl")
    with pytest.raises(DataError, match="a file, but got nothing there"):
        ClassEmbeddings.from_table(tmp_path / "table.csv")


def test_mat_is_read_without_scipy(tmp_path, monkeypatch):
    file = write(tmp_path, "mat")
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    assert ClassEmbeddings.from_table(file).names == NAMES


def test_names_that_differ_in_a_sign_never_share_a_vector() -> None:
    one = ClassEmbeddings(("HER2+", "cat"), torch.eye(2))
    with pytest.raises(DataError, match=r"none for 'HER2-'"):
        one.aligned_to(("HER2+", "HER2-"))
    assert one.aligned_to(("her2", "Cat")).vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_rows_without_hidden_classes_keep_those_of_known_ones():
    for names, left in (
        (["HER2+", "HER2-", "cat"], ["HER2+", "cat"]),  # each by its exact name
        (["HER2+", "her2 -", "cat"], ["HER2+", "cat"]),
        (["her2 +", "HER2-", "cat"], ["her2 +", "cat"]),
        (["her2", "cat"], ["her2", "cat"]),  # as `aligned_to` gives it to the known class
        (["her2 +", "her2 -", "cat"], ["cat"]),  # nobody can tell which is which
        (["HER3-", "Cat"], ["HER3-", "Cat"]),  # of no class of the dataset
    ):
        assert [names[i] for i in rows_without(names, ["HER2-"], ["HER2+", "cat"])] == left, names
    assert rows_without(["a", "A"], [], ["a"]) == [0, 1]


def test_a_class_is_found_and_hidden_in_every_spelling() -> None:
    table = ClassEmbeddings(("STRASSE", unicodedata.normalize("NFD", "Café")), torch.eye(2))
    assert table.aligned_to(("café", "Straße")).vectors.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert rows_without(table.names, ["Straße"], []) == [1]
    assert rows_without(table.names, ["café"], []) == [0]


def test_the_error_for_rows_without_names_can_be_followed(tmp_path: Path) -> None:
    rows = np.eye(2, dtype=np.float32)
    np.savez(tmp_path / "rows.npz", vectors=rows)
    with pytest.raises(DataError, match=r"Store them in it as an array of texts called 'class_names'"):
        ClassEmbeddings.from_table(tmp_path / "rows.npz")
    np.savez(tmp_path / "rows.npz", vectors=rows, class_names=np.array(["ant", "bee"]))
    assert ClassEmbeddings.from_table(tmp_path / "rows.npz").names == ("ant", "bee")
    np.save(tmp_path / "plain.npy", rows)
    with pytest.raises(DataError, match=r"Write one per line into 'plain\.txt'"):
        ClassEmbeddings.from_table(tmp_path / "plain.npy")
    (tmp_path / "plain.txt").write_text("ant\nbee\n")
    assert ClassEmbeddings.from_table(tmp_path / "plain.npy").names == ("ant", "bee")
