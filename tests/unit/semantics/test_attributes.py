"""Embeddings from attributes: a dataset's csv, and AWA2's own files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ltds.core.errors import DataError
from ltds.semantics.attributes import from_attributes_csv, from_awa2
from ltds.stats.neighbours import semantic_neighbours

AWA2 = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "awa2"


def test_csv_is_standardised_so_that_units_do_not_matter(tmp_path):
    metres, centimetres = tmp_path / "m.csv", tmp_path / "cm.csv"
    metres.write_text("class,height,legs,alive\nant,0.01,6,1\ndog,0.5,4,1\nman,1.7,2,1\n")
    centimetres.write_text("class,height,legs,alive\nant,1,6,1\ndog,50,4,1\nman,170,2,1\n")
    embeddings = from_attributes_csv(metres)
    assert embeddings.names == ("ant", "dog", "man")
    assert embeddings.provenance["attributes"] == ["height", "legs"]  # 'alive' tells nothing apart
    assert embeddings.provenance["sha256"] == hashlib.sha256(metres.read_bytes()).hexdigest()
    values = np.array([[0.01, 6], [0.5, 4], [1.7, 2]])
    standard = (values - values.mean(0)) / values.std(0)
    wanted = torch.from_numpy(standard / np.linalg.norm(standard, axis=1, keepdims=True)).float()
    assert_close(embeddings.vectors, wanted)
    assert_close(from_attributes_csv(centimetres).vectors, wanted)


def test_attributes_that_tell_nothing_apart_are_refused(tmp_path):
    file = tmp_path / "same.csv"
    file.write_text("class,alive\nant,1\ndog,1\n")
    with pytest.raises(DataError, match="different between classes"):
        from_attributes_csv(file)


def awa2_folder(tmp_path, matrix):
    (tmp_path / "classes.txt").write_text("     1\tantelope\n     2\tgrizzly+bear\n     3\tfox\n")
    (tmp_path / "predicate-matrix-continuous.txt").write_text(matrix)
    return tmp_path


def test_awa2_files_with_an_entry_nobody_rated(tmp_path):
    embeddings = from_awa2(awa2_folder(tmp_path, "-1.00 10.00\n20.00 30.00\n40.00 80.00\n"))
    assert embeddings.names == ("antelope", "grizzly+bear", "fox")
    values = np.array([[30.0, 10], [20, 30], [40, 80]])  # -1 becomes the mean of 20 and 40
    standard = (values - values.mean(0)) / values.std(0)
    wanted = standard / np.linalg.norm(standard, axis=1, keepdims=True)
    assert_close(embeddings.vectors, torch.from_numpy(wanted).float())
    assert embeddings.vectors[0, 0] == 0


def test_awa2_says_where_its_numbers_come_from(tmp_path):
    folder = awa2_folder(tmp_path, "5 10 1\n5 30 2\n5 80 0\n")
    files = ["classes.txt", "predicate-matrix-continuous.txt"]
    assert "attributes" not in from_awa2(folder).provenance
    (folder / "predicates.txt").write_text("     1\tnewborn\n     2\tfurry\n     3\tstripes\n")
    provenance = from_awa2(folder).provenance
    assert provenance["attributes"] == ["furry", "stripes"]  # all are newborn: that tells nothing apart
    wanted = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in [*files, "predicates.txt"]}
    assert provenance["sha256"] == wanted
    (folder / "predicates.txt").write_text("     1\tfurry\n")
    with pytest.raises(DataError, match="3 names, one per column of the matrix, but got 1"):
        from_awa2(folder)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("1 2\n3 4\n5\n", "2 numbers in every row, but got 1 in row 3"),
        ("1 2\n3 x\n5 6\n", "'could not convert string to float: 'x'' after 1 rows"),
        ("", "3 rows, one per class, but got 0"),
    ],
)
def test_awa2_matrices_that_are_none(tmp_path, matrix, message):
    with pytest.raises(DataError, match=message):
        from_awa2(awa2_folder(tmp_path, matrix))


def test_awa2_files_that_are_not_text(tmp_path):
    folder = awa2_folder(tmp_path, "1 2\n3 4\n5 6\n")
    (folder / "predicate-matrix-continuous.txt").write_bytes(b"\xff\xfe1 2")
    with pytest.raises(DataError, match="a matrix of numbers"):
        from_awa2(folder)
    (folder / "classes.txt").write_bytes(b"1 caf\xe9")
    with pytest.raises(DataError, match="text in UTF-8"):
        from_awa2(folder)


def test_awa2_files_that_do_not_fit(tmp_path):
    with pytest.raises(DataError, match="3 rows, one per class, but got 2"):
        from_awa2(awa2_folder(tmp_path, "1 2\n3 4\n"))
    (tmp_path / "classes.txt").unlink()
    with pytest.raises(DataError, match=r"classes\.txt"):
        from_awa2(tmp_path)


def test_real_awa2():
    if not AWA2.is_dir():
        pytest.skip("the AWA2 metadata are not beside this repository")
    embeddings = from_awa2(AWA2)
    assert embeddings.vectors.shape == (50, 85)
    assert len(embeddings.provenance["attributes"]) == 85
    assert embeddings.provenance["attributes"][:2] == ["black", "white"]
    assert_close(embeddings.vectors.norm(dim=1), torch.ones(50))
    near = semantic_neighbours(embeddings.vectors, 2)[:, 1]
    names = embeddings.names
    assert names[near[names.index("lion")]] in {"tiger", "leopard", "bobcat", "wolf"}
    assert names[near[names.index("humpback+whale")]] == "blue+whale"
    assert embeddings.aligned_to(["grizzly bear", "Blue_Whale"]).vectors.shape == (2, 85)
