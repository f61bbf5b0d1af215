"""MATLAB files of versions 5 to 7: matrices of numbers, texts and cells, with every length checked before it is used.

scipy reads more kinds of variables, but a damaged file can end the whole process inside its compiled reader. Variables
of other kinds (structures, sparse matrices, objects) are skipped. The format is MathWorks' "MAT-File Format", level 5.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = 128
MOST_BYTES = 1 << 30  # that a compressed variable may unpack to
MOST_DEPTH = 8  # of cells inside cells
MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32"}
CELL, TEXT = 1, 4
NUMBERS = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


class MatlabFileError(ValueError):
    """A file that is damaged, or not of these versions."""


@dataclass(frozen=True)
class _Element:
    """A data element of the file: what it holds, as a number of the format, and its bytes."""

    kind: int
    content: memoryview


def read_matlab(file: Path) -> dict[str, NDArray[Any]]:
    """The variables of the file by name. Cells are arrays of objects, texts arrays with a text for each row."""
    content = file.read_bytes()
    order = _byte_order(content)
    variables: dict[str, NDArray[Any]] = {}
    for element in _elements(memoryview(content)[HEADER:], order):
        element = _unpacked(element, order)
        if element.kind == MATRIX:
            name, value = _variable(element.content, order)
            if value is not None:
                variables[name] = value
    return variables


def _byte_order(content: bytes) -> str:
    mark = content[126:128]
    if content[:4] == b"\x89HDF" or content[512:516] == b"\x89HDF":
        raise MatlabFileError("version 7.3: save it again in MATLAB with save(..., '-v7')")
    if len(content) < HEADER or mark not in (b"IM", b"MI"):
        raise MatlabFileError("no file of MATLAB version 5 to 7: save it again in MATLAB with save(..., '-v7')")
    return "<" if mark == b"IM" else ">"


def _elements(content: memoryview, order: str) -> Iterator[_Element]:
    """The elements one after the other: a tag of 8 bytes and the content, or both in 8 bytes if it is short."""
    start = 0
    while start < len(content):
        if start + 8 > len(content):
            raise MatlabFileError(f"{len(content) - start} bytes in place of a whole tag")
        kind, length = struct.unpack_from(f"{order}II", content, start)
        if kind >> 16:
            kind, length, first = kind & 0xFFFF, kind >> 16, start + 4
            end = start + 8
            if length > 4:
                raise MatlabFileError(f"a short element of {length} bytes")
        else:
            first = start + 8
            end = first + length if kind == COMPRESSED else first + -(-length // 8) * 8
        if first + length > len(content):
            raise MatlabFileError(f"an element of {length} bytes where {len(content) - first} are left")
        yield _Element(kind, content[first : first + length])
        start = end


def _unpacked(element: _Element, order: str) -> _Element:
    if element.kind != COMPRESSED:
        return element
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(element.content, MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise MatlabFileError(f"a variable of more than {MOST_BYTES >> 20} MB")
    if not unpacker.eof:
        raise MatlabFileError("a compressed variable without its end")
    inside = next(_elements(memoryview(content), order), None)
    if inside is None or inside.kind == COMPRESSED:
        raise MatlabFileError("a compressed variable that holds no variable")
    return inside


def _variable(content: memoryview, order: str, depth: int = 0) -> tuple[str, NDArray[Any] | None]:
    """The name and the value of a variable or of a cell; None for a value of a kind that no table needs."""
    if not len(content):  # an empty cell
        return "", np.empty((0, 0))
    parts = _elements(content, order)
    flags, shape, name = (_integers(part, order) for part in _first_three(parts))
    if not len(flags):
        raise MatlabFileError("a variable without a class")
    kind, is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) & 0x800)
    dims = tuple(int(side) for side in shape)
    if len(dims) < 2 or min(dims) < 0 or len(dims) > 32:
        raise MatlabFileError(f"a variable of shape {dims}")
    title = bytes(int(letter) & 0x7F for letter in name).decode("ascii")
    if kind == CELL:
        return title, _cells(parts, dims, order, depth)
    if kind == TEXT:
        return title, _text_rows(parts, dims, order)
    if kind in NUMBERS and not is_complex:
        values = _numbers(next(parts, None), order)
        return title, _shaped(values.astype(NUMBERS[kind]), dims)
    return title, None


def _first_three(parts: Iterator[_Element]) -> list[_Element]:
    found = [part for _, part in zip(range(3), parts, strict=False)]
    if len(found) < 3:
        raise MatlabFileError("a variable without class, shape and name")
    return found


def _integers(element: _Element, order: str) -> NDArray[Any]:
    values = _numbers(element, order)
    if values.dtype.kind not in "iu":
        raise MatlabFileError(f"numbers of kind {values.dtype} in place of integers")
    return values


def _numbers(element: _Element | None, order: str) -> NDArray[Any]:
    if element is None or element.kind not in STORED:
        raise MatlabFileError("a variable without numbers")
    kind = np.dtype(order + STORED[element.kind])
    if len(element.content) % kind.itemsize:
        raise MatlabFileError(f"{len(element.content)} bytes of numbers of {kind.itemsize} bytes")
    return np.frombuffer(element.content, kind)


def _shaped(values: NDArray[Any], dims: tuple[int, ...]) -> NDArray[Any]:
    if values.size != math.prod(dims):
        raise MatlabFileError(f"{values.size} values for the shape {dims}")
    return values.reshape(dims, order="F")


def _cells(parts: Iterator[_Element], dims: tuple[int, ...], order: str, depth: int) -> NDArray[Any]:
    if depth >= MOST_DEPTH:
        raise MatlabFileError(f"cells inside cells, {depth} deep")
    found = []
    for part in parts:
        if part.kind != MATRIX:
            raise MatlabFileError(f"a cell of kind {part.kind}")
        found.append(_variable(part.content, order, depth + 1)[1])
    cells = np.empty(len(found), dtype=object)
    cells[:] = found
    return _shaped(cells, dims)


def _text_rows(parts: Iterator[_Element], dims: tuple[int, ...], order: str) -> NDArray[Any]:
    """(rows,) texts: MATLAB stores a matrix of letters column by column."""
    element = next(parts, None)
    if element is None:
        raise MatlabFileError("a text without letters")
    if element.kind in TEXTS:
        ending = "" if element.kind == 16 else "-le" if order == "<" else "-be"
        letters = np.array(list(bytes(element.content).decode(TEXTS[element.kind] + ending)), dtype="U1")
    else:
        letters = np.array([chr(code) for code in _letters(_integers(element, order))], dtype="U1")
    rows = _shaped(letters, dims).reshape(dims[0], -1) if math.prod(dims) else np.empty((1, 0), dtype="U1")
    return np.array(["".join(row) for row in rows])


def _letters(codes: NDArray[Any]) -> list[int]:
    if codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < 0xD800):
        raise MatlabFileError("letters that are none")
    return [int(code) for code in codes]
