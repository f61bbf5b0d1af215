"""Files of pixels and activations, read at any position by any thread.

A memory map would save a copy of each image, but it ends the whole process (SIGBUS) when the file is shortened, or its
disk fails, while a run reads it. A read that comes back short is an error like any other. The copy costs about 10 µs
for an image of 64 pixels and 60 µs for one of 227, where cropping and jittering takes milliseconds.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected

REMEDY = (
    "Something else deleted from or wrote to this folder, or its disk failed. Type the same command again (a run: "
    "resume it): damaged files of a cache are made again."
)


class OpenFile:
    """A file that stays open, and keeps its content, when its name is given to another file or removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._close = weakref.finalize(self, os.close, self._handle)
        self._position = threading.Lock()  # of the file, where the system has only one for all threads

    @property
    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def read(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """The array that starts `offset` bytes after the beginning of the file."""
        array = np.empty(shape, dtype)
        left = array.reshape(-1).view(np.uint8).data
        try:
            while left and (count := self._read_into(left, offset)):
                left, offset = left[count:], offset + count
            problem = f"a file that now has {self.size} bytes" if left else ""
        except OSError as error:
            problem = f"'{error}'"
        if problem:
            raise DataError(expected(f"'{self.path}'", f"read up to byte {offset + len(left)}", problem, REMEDY))
        return array

    def _read_into(self, buffer: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._handle, [buffer], offset)
        with self._position:  # Windows, which also refuses to shorten a file that is in use
            os.lseek(self._handle, offset, os.SEEK_SET)
            content = os.read(self._handle, len(buffer))
        buffer[: len(content)] = content
        return len(content)


class ArrayOnDisk:
    """The array of a .npy file; rows are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        """Raises OSError if it cannot be opened, ValueError if it is not a complete .npy file."""
        with path.open("rb") as stream:
            npy.read_magic(stream)
            shape, fortran, self.dtype = npy.read_array_header_1_0(stream)
            self._start = stream.tell()
        self.shape: tuple[int, ...] = shape
        self._file = OpenFile(path)
        self._row = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        if fortran or self.dtype.hasobject or not shape or self._file.size != self._start + shape[0] * self._row:
            raise ValueError(f"'{path}' is not a complete array of rows")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for i, row in enumerate(rows.tolist()):
            out[i] = self._file.read(self._start + row * self._row, self.shape[1:], self.dtype)
        return out
