"""Tables of class names and numbers, from .csv, .npy, .npz and MATLAB files."""

from __future__ import annotations

import csv
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltds.core.array_files import read_array, read_arrays
from ltds.core.errors import DataError, did_you_mean, expected
from ltds.core.text import reading, text_lines
from ltds.semantics.matlab import read_matlab

NAME_KEYS = ("class_names", "names", "classes", "allclasses_names")


@dataclass(frozen=True)
class ClassTable:
    """names (C,), values (C, columns) float64, columns if the file names them, and the key of the array in the file."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    columns: tuple[str, ...] = ()
    key: str | None = None


def read_table(file: Path, *, names: Sequence[str] | None = None, key: str | None = None) -> ClassTable:
    """The table in a .csv, .npy, .npz or .mat file; `names` and `key` if the file does not say them."""
    readers = {".csv": _read_csv, ".npy": _read_npy, ".npz": _read_npz, ".mat": _read_mat}
    if file.suffix.lower() not in readers:
        remedy = "Convert it to .csv with the class in the first column."
        raise DataError(expected(f"'{file.name}'", f"one of {', '.join(readers)}", f"'{file.suffix}'", remedy))
    if not file.is_file():
        raise DataError(expected(f"'{file}'", "a file", "nothing there", "Check the path to the embeddings."))
    return readers[file.suffix.lower()](file, names, key)


@contextmanager
def _arrays_of(file: Path) -> Iterator[None]:
    """Turn what numpy and our readers raise for damaged files, other files or pickled objects into one sentence."""
    try:
        yield
    except (ValueError, OSError, struct.error, zlib.error) as error:
        rule = f"a readable {file.suffix.lower()}, of plain numbers and texts"
        remedy = (
            "Write it again: a .csv in UTF-8 with the class in the first column, or the names as strings, not objects."
        )
        raise DataError(expected(f"'{file}'", rule, f"'{error}'", remedy)) from error


def _read_csv(file: Path, names: Sequence[str] | None, key: str | None) -> ClassTable:
    if names is not None or key is not None:
        remedy = "Leave names and key out: a .csv has its classes in the first column."
        raise DataError(expected("names and key", "unset for a .csv", repr(key or "names"), remedy))
    with reading(file) as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        rows = [(reader.line_num, row) for row in reader if row]
    if len(header) < 2 or not rows:
        remedy = "Write 'class,first,second,...' and then one line per class."
        raise DataError(expected(f"'{file}'", "a header and one line per class", f"{len(rows)} lines", remedy))
    values = [_numbers(file, line, row, len(header) - 1) for line, row in rows]
    return ClassTable(tuple(row[0] for _, row in rows), np.array(values), tuple(header[1:]))


def _numbers(file: Path, line: int, row: list[str], width: int) -> list[float]:
    try:
        numbers = [float(cell) for cell in row[1:]]
    except ValueError:
        numbers = []
    if len(numbers) != width or not all(map(math.isfinite, numbers)):
        rule = f"a class and {width} finite numbers"
        raise DataError(expected(f"line {line} of '{file}'", rule, f"'{','.join(row)}'", "Correct that line."))
    return numbers


def _read_npy(file: Path, names: Sequence[str] | None, key: str | None) -> ClassTable:
    if key is not None:
        raise DataError(expected("key", "unset for a .npy", f"'{key}'", "A .npy holds one array: leave key out."))
    names_file = file.with_suffix(".txt")
    if names is None and names_file.is_file():
        names = text_lines(names_file)
    with _arrays_of(file):
        values = read_array(file)
    return _table(file, values, names, None)


def _read_npz(file: Path, names: Sequence[str] | None, key: str | None) -> ClassTable:
    with _arrays_of(file):
        arrays = read_arrays(file)
    return _from_arrays(file, arrays, names, key)


def _read_mat(file: Path, names: Sequence[str] | None, key: str | None) -> ClassTable:
    with _arrays_of(file):
        arrays = read_matlab(file)
    return _from_arrays(file, arrays, names, key)


def _from_arrays(file: Path, arrays: Mapping[str, Any], names: Sequence[str] | None, key: str | None) -> ClassTable:
    if names is None:
        inside = next((arrays[k] for k in NAME_KEYS if k in arrays), None)
        with _arrays_of(file):  # names in another encoding than UTF-8
            names = None if inside is None else [_text(cell) for cell in np.asarray(inside).ravel()]
    matrices = [k for k, v in arrays.items() if np.ndim(v) == 2 and np.issubdtype(np.asarray(v).dtype, np.number)]
    if key is None and len(matrices) == 1:
        key = matrices[0]
    if key not in matrices:
        rule, how = "the name of one of its matrices", "Give it as argument 'key' (in a run: semantics.key)."
        got = "none" if key is None else f"'{key}'"
        raise DataError(expected(f"key for '{file.name}'", rule, got, f"{how} {did_you_mean(key or '', matrices)}"))
    return _table(file, arrays[key], names, key)


def _table(file: Path, values: NDArray[Any], names: Sequence[str] | None, key: str | None) -> ClassTable:
    if names is None:
        beside = f"Write one per line into '{file.with_suffix('.txt').name}', in the order of the rows."
        inside = f"Store them in it as an array of texts called '{NAME_KEYS[0]}', in the order of the rows."
        remedy = beside if file.suffix.lower() == ".npy" else inside
        raise DataError(expected(f"'{file.name}'", "accompanied by class names", "none", remedy))
    if values.ndim == 2 and file.suffix.lower() == ".mat" and values.shape[0] != len(names) == values.shape[1]:
        values = values.T  # MATLAB tables often have a class per column
    if values.ndim != 2 or len(values) != len(names):
        rule, remedy = f"a matrix of {len(names)} rows, one per name", "Check that names and file belong together."
        raise DataError(expected(f"'{file.name}'", rule, f"shape {values.shape}", remedy))
    if not np.issubdtype(values.dtype, np.number):
        raise DataError(expected(f"'{file.name}'", "a matrix of numbers", f"of {values.dtype}", "Save it as float32."))
    return ClassTable(tuple(names), np.asarray(values, dtype=np.float64), key=key)


def _text(cell: Any) -> str:
    """The name in a numpy string or in MATLAB's nested cells."""
    while isinstance(cell, np.ndarray):
        cell = cell.item() if cell.size == 1 else "".join(map(str, cell.ravel()))
    return (cell.decode("utf-8") if isinstance(cell, bytes) else str(cell)).strip()
