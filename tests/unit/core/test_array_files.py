""".npy and .npz files from anywhere: what numpy wrote is read; what is damaged, too large or pickled is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from ltds.core.array_files import ArrayFileError, provenance_in, read_array, read_arrays
from ltds.core.errors import DataError
from ltds.core.rng import numpy_generator
from ltds.semantics.tables import read_table

ARRAYS = {
    "a": np.arange(6, dtype=np.float16).reshape(2, 3),
    "b": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "c": np.array(["ant", "bee"]),
    "d": np.array(7),
    "e": np.zeros((0, 4), dtype=">i4"),
}


def huge_header(file: Path) -> None:
    """The header of an array of 298 GiB, and no numbers."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (40000000000,), }".ljust(117) + b"\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def test_arrays_are_what_numpy_reads(tmp_path: Path) -> None:
    for name, array in ARRAYS.items():
        np.save(tmp_path / f"{name}.npy", array)
        found = read_array(tmp_path / f"{name}.npy")
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "all.npz", **ARRAYS)
        found_arrays = read_arrays(tmp_path / "all.npz")
        assert sorted(found_arrays) == sorted(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found_arrays[name], array)


def test_a_header_larger_than_the_file_is_refused(tmp_path: Path) -> None:
    huge_header(tmp_path / "a.npy")
    with pytest.raises(ArrayFileError, match="a header for 320000000000 bytes in a file of"):
        read_array(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.write(tmp_path / "a.npy", "a.npy")
    with pytest.raises(ArrayFileError, match="a header for 320000000000 bytes"):
        read_arrays(tmp_path / "a.npz")
    with pytest.raises(DataError, match=r"to be a readable \.npy, of plain numbers and texts, but got 'a header for"):
        read_table(tmp_path / "a.npy", names=["x"])


def test_an_archive_made_to_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(2**21, dtype=np.uint8))
    assert read_arrays(tmp_path / "bomb.npz")["a"].shape == (2**21,)
    monkeypatch.setattr("ltds.core.array_files.ALWAYS_ALLOWED", 2**20)  # as if it were larger
    with pytest.raises(ArrayFileError, match=r"2097\d+ bytes, compressed into a file of \d{4}: it would fill"):
        read_arrays(tmp_path / "bomb.npz")


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ArrayFileError, match="could run code"):
        read_array(tmp_path / "a.npy")


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_no_damage_does_more_than_raise_an_error(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.{ending}"
    np.save(file, ARRAYS["a"]) if ending == "npy" else np.savez_compressed(file, **ARRAYS)
    content, rng = file.read_bytes(), numpy_generator(0, "tests/arrays")
    read, refused = (read_array if ending == "npy" else read_arrays), 0
    for _ in range(500):
        damaged = bytearray(content)
        for place in rng.integers(0, min(len(content), 600), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        file.write_bytes(damaged[: rng.integers(1, len(content) + 1)] if rng.random() < 0.3 else damaged)
        try:
            read(file)
        except ArrayFileError:
            refused += 1
    assert refused > 100


def test_names_that_are_not_utf8_are_a_sentence(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", vectors=np.eye(2), names=np.array(["Äffchen".encode("latin-1"), b"bee"]))
    with pytest.raises(DataError, match=r"a\.npz' to be a readable \.npz, of plain numbers and texts.*utf-8"):
        read_table(tmp_path / "a.npz")


def test_provenance_is_empty_where_a_file_has_none(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    assert provenance_in(file) == {}
    for text, found in (('{"with": "x"}', {"with": "x"}), ("[1]", {}), ("{", {}), ("[" * 100_000, {})):
        np.savez(file, provenance=np.array(text))
        assert provenance_in(file) == found
    np.savez(file, vectors=np.eye(2))
    assert provenance_in(file) == {}
    file.write_text("path,class\n")
    assert provenance_in(file) == {}
