"""Tiles of the symmetric matrix exp(cosine / tau) between distinct rows, never held as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from ltds.core.devices import to_device
from ltds.losses.kernels.distinct_rows import DistinctRows

ROWS = 512
"""Rows of one tile: fewer make the products inefficient, more save less of the symmetric half."""

COLUMNS = 1024
"""Columns of one tile: wider ones do not stay in the cache between their products."""

Tile = tuple[slice, slice]


class Tiles:
    """The upper half of E (N,N): exp(cosine / tau) between rows, 0 between rows of one class.

    Only the first `width` rows and columns are covered. Without `mutual` the projected rows meet only the rows of s.
    """

    def __init__(self, distinct: DistinctRows, tau: float, *, mutual: bool) -> None:
        self.distinct, self.tau, self.mutual = distinct, tau, mutual
        self.width = len(distinct.rows) if distinct.has_copies else distinct.P
        self.grid = [*self._grid(0, distinct.P), *self._grid(distinct.P, self.width)]

    def _grid(self, first: int, last: int) -> Iterator[Tile]:
        """Rows from first to last, with the columns from the diagonal on."""
        for top in range(first, last, ROWS):
            for left in range(top if self.mutual else max(top, self.distinct.P), self.width, COLUMNS):
                yield slice(top, min(top + ROWS, last)), slice(left, min(left + COLUMNS, self.width))

    def exponentials(self, rows: slice, columns: slice, out: Tensor) -> Tensor:
        """The entries of E in this tile, computed in the memory of `out`."""
        everyone, shape = self.distinct.rows, (rows.stop - rows.start, columns.stop - columns.start)
        tile = out[: shape[0] * shape[1]].view(shape)
        tile.addmm_(everyone[rows], everyone[columns].T, beta=0, alpha=1 / self.tau).exp_()
        same_class = self.distinct.position[:, self.distinct.classes[rows]] - columns.start
        table, row = ((same_class >= 0) & (same_class < shape[1])).nonzero(as_tuple=True)
        row, column = (to_device(index, tile.device) for index in (row, same_class[table, row]))
        tile[row, column] = 0
        return tile


def mirrored(rows: slice, columns: slice, end: int, tile: Tensor) -> tuple[slice, Tensor]:
    """The tile's columns after its rows and before the end: there the lower half of E is its transpose."""
    first, last = max(columns.start, rows.stop), max(min(columns.stop, end), columns.start, rows.stop)
    return slice(first, last), tile[:, first - columns.start : last - columns.start]
