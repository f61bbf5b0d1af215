"""MATLAB files: what scipy writes is read as scipy reads it, and no damage does more than raise an error."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from ltds.core.errors import DataError
from ltds.core.rng import numpy_generator
from ltds.semantics.matlab import MatlabFileError, read_matlab
from ltds.semantics.tables import read_table

io = pytest.importorskip("scipy.io")
CELLS = np.array([["ant"], ["honey bee"], ["Äffchen"]], dtype=object)
CONTENT = {
    "att": np.array([[0.5, 1.0, -2.0], [3.0, 4.0, 5.5]]),
    "small": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "whole": np.arange(24.0, dtype=np.float32).reshape(2, 3, 4),
    "wide": np.array([[2**40, -5]], dtype=np.int64),
    "names": CELLS,
    "letters": np.array(["cat", "dog"]),
    "empty": np.zeros((0, 3)),
}


def saved(folder: Path, *, compressed: bool, **more: object) -> Path:
    io.savemat(folder / "a.mat", {**CONTENT, **more}, do_compression=compressed)
    return folder / "a.mat"


@pytest.mark.parametrize("compressed", [False, True])
def test_variables_are_what_scipy_reads(tmp_path: Path, compressed: bool) -> None:
    file = saved(tmp_path, compressed=compressed)
    ours, theirs = read_matlab(file), io.loadmat(file)
    assert sorted(ours) == sorted(CONTENT)
    for name in ("att", "small", "whole", "wide", "empty"):
        np.testing.assert_array_equal(ours[name], theirs[name])
        assert ours[name].dtype == theirs[name].dtype
    assert [str(cell[0]) for cell in ours["names"].ravel()] == ["ant", "honey bee", "Äffchen"]
    assert ours["letters"].tolist() == theirs["letters"].tolist() == ["cat", "dog"]


def test_other_kinds_of_variables_are_skipped(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    more = {"s": {"field": 1}, "z": np.array([[1 + 2j]]), "thin": sparse.csc_array(np.eye(3))}
    assert sorted(read_matlab(saved(tmp_path, compressed=True, **more))) == sorted(CONTENT)


def test_a_table_comes_from_a_file(tmp_path: Path) -> None:
    io.savemat(tmp_path / "t.mat", {"att": CONTENT["att"], "allclasses_names": CELLS})
    table = read_table(tmp_path / "t.mat")
    assert table.names == ("ant", "honey bee", "Äffchen")
    np.testing.assert_array_equal(table.values, CONTENT["att"].T)


@pytest.mark.parametrize("compressed", [False, True])
def test_no_damage_does_more_than_raise_an_error(tmp_path: Path, compressed: bool) -> None:
    """Cut anywhere, or with bytes changed: read as something, or refused with a sentence; never more."""
    content = saved(tmp_path, compressed=compressed).read_bytes()
    rng = numpy_generator(0, "tests/matlab", int(compressed))
    cuts = [content[:length] for length in range(0, len(content), 7)]
    changes = []
    for _ in range(600):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        changes.append(bytes(damaged))
    file, refused = tmp_path / "damaged.mat", 0
    for damaged_content in (*cuts, *changes):
        file.write_bytes(damaged_content)
        try:
            read_table(file, key="att")
        except DataError:
            refused += 1
    assert refused > len(cuts) // 2


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltds.semantics.matlab.MOST_BYTES", 1000)
    packed = zlib.compress(bytes(100_000))
    header = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "a.mat").write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(MatlabFileError, match="a variable of more than"):
        read_matlab(tmp_path / "a.mat")


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n", b"x" * 200, bytes(512) + b"\x89HDF" + bytes(9)])
def test_other_files_say_how_to_save(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.mat' to be a readable \.mat.*save\(\.\.\., '-v7'\)"):
        read_table(tmp_path / "a.mat")
