"""Arrays in .npy and .npz files from anywhere: no pickles, and every length is compared with the file first."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

# Compressed arrays may be this many times longer than their file; beyond that an archive is made to fill the memory.
LONGEST = 100
ALWAYS_ALLOWED = 2**28  # bytes: many zeros are small, too, and harm nobody


class ArrayFileError(ValueError):
    """A file of arrays that is damaged, or another kind of file."""


def read_array(file: Path) -> NDArray[Any]:
    """The array in a .npy file. Raises OSError if it cannot be opened, ArrayFileError if it cannot be understood."""
    with file.open("rb") as stream:
        try:
            return _array(stream, file.stat().st_size)
        except Exception as error:  # numpy raises anything on a damaged header
            raise _damaged(error) from error


def read_arrays(file: Path, only: str = "") -> dict[str, NDArray[Any]]:
    """The arrays in a .npz file by name. Raises OSError if it cannot be opened, ArrayFileError if it is damaged.

    `only`: the name of the one that is read.
    """
    with file.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _require_plausible(archive, file.stat().st_size)
                members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
                return {name: _member(archive, member) for name, member in members.items() if only in ("", name)}
        except Exception as error:  # and so does zipfile on a damaged archive
            raise _damaged(error) from error


def read_provenance(file: Path) -> dict[str, Any]:
    """How a .npz file was made: the JSON object in its array `provenance`, the only one that is read."""
    content = json.loads(str(read_arrays(file, only="provenance")["provenance"]))
    if not isinstance(content, dict):
        raise ArrayFileError(f"a provenance that is a {type(content).__name__}")
    return content


def provenance_in(file: Path) -> dict[str, Any]:
    """As `read_provenance`, but empty for any other file."""
    try:
        return read_provenance(file)
    except (OSError, ValueError, LookupError, RecursionError):
        return {}


def _damaged(error: Exception) -> ArrayFileError:
    if isinstance(error, ArrayFileError):
        return error
    return ArrayFileError(f"{type(error).__name__}: {str(error)[:200]}")


def _require_plausible(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive that claims to unpack to far more than the bytes of its file can hold, before it does."""
    claimed = sum(member.file_size for member in archive.infolist())
    if claimed > ALWAYS_ALLOWED + LONGEST * size:
        raise ArrayFileError(f"{claimed} bytes, compressed into a file of {size}: it would fill the memory")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        array = _array(stream, member.file_size)
        if stream.read(1):  # reading to the end also compares the checksum
            raise ArrayFileError(f"more in '{member.filename}' than an array")
        return array


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """The array that starts here, in at most `size` bytes."""
    version = npy.read_magic(stream)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject:
        raise ArrayFileError("pickled objects, which are not read because they could run code")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize > size:
        raise ArrayFileError(f"a header for {count * dtype.itemsize} bytes in a file of {size}")
    content = stream.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise ArrayFileError(f"{len(content)} bytes of {count * dtype.itemsize}")
    return np.frombuffer(bytearray(content), dtype, count).reshape(shape, order="F" if fortran else "C")
