"""Sums over a class sample: a class of the batch counts once, a class that was drawn counts for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ltds.losses.class_sample import ClassSample


class Strata:
    """Among the negatives of row x a drawn class counts factor_x times, any other once (see `ClassSample`).

    The matrix of these counts is not symmetric, but the matrix E of exponentials stays so: sums over certain and over
    drawn classes have their own columns, which are joined row by row.
    """

    def __init__(self, sample: ClassSample, classes: Tensor, dtype: torch.dtype) -> None:
        self.certain, self.classes = sample.certain, len(sample.classes)
        self.drawn = sample.drawn[classes, None].to(dtype)  # (N,1), of each row
        self.factor = sample.factors[classes, None].to(dtype)

    def split(self, member: Tensor) -> Tensor:
        """(N,2T) from (N,T): the columns of certain classes, then those of drawn ones."""
        return torch.cat([member * (1 - self.drawn), member * self.drawn], 1)

    def joined(self, sums: Tensor) -> Tensor:
        """(N,T) from (N,2T): sums over certain classes and, as often as they count, over drawn ones."""
        certain, drawn = sums.chunk(2, dim=1)
        return certain + self.factor * drawn

    def spread(self, share: Tensor) -> Tensor:
        """(N,2T) from (N,T): the derivative by split sums from the one by joined sums."""
        return torch.cat([share, self.factor * share], 1)

    def weigh(self, tile: Tensor, rows: slice, columns: slice) -> None:
        """Multiply the drawn classes in a tile of E whose columns are rows of s, which come last, in place."""
        first = len(self.drawn) - self.classes + self.certain - columns.start
        tile[:, max(first, 0) :] *= self.factor[rows]
