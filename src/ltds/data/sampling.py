"""Which rows a step trains on: pure functions of (seed, step), so that resuming needs no saved state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ltds.core.errors import DataError, expected
from ltds.core.rng import numpy_generator

RowIds = NDArray[np.int64]
PER_CLASS = 4  # images that a class gives in its turn, as in the original


class Sampler(Protocol):
    """`sampler(step)` gives `groups * batch` manifest rows: one group of `batch` rows after the other."""

    @property
    def groups(self) -> int: ...

    @property
    def batch(self) -> int: ...

    def __call__(self, step: int) -> RowIds: ...


class _Cycle:
    """Endless passes over `rows`, each in a new random order."""

    def __init__(self, rows: RowIds, seed: int, stream: str) -> None:
        self.rows = np.asarray(rows, dtype=np.int64)

        # Two passes are remembered: threads may load the end of one and the start of the next.
        @lru_cache(maxsize=2)
        def order(number: int) -> RowIds:
            return self.rows[numpy_generator(seed, stream, number).permutation(len(self.rows))]

        self.order = order

    def whole_batch(self, step: int, batch: int) -> RowIds:
        """(batch,) the step-th batch; the rows that do not fill a last batch of a pass are dropped."""
        number, index = divmod(step, len(self.rows) // batch)
        return self.order(number)[index * batch : (index + 1) * batch]

    def at(self, position: int) -> int:
        """The row at a position of the endless passes, nothing dropped."""
        number, index = divmod(position, len(self.rows))
        return int(self.order(number)[index])


class DomainBalanced:
    """(K*times*batch,) rows a step: `times` batches of each source domain, one source after the other.

    `rows` has the training rows of each source, `names` its name. The order within a domain depends on the seed and its
    name, not on which other domains there are.
    """

    def __init__(self, rows: Sequence[RowIds], batch: int, seed: int, names: Sequence[str], times: int = 1) -> None:
        size, name = min(zip(map(len, rows), names, strict=True))  # a batch that fits it fits every domain
        _check(size, batch, f"domain '{name}'", times)
        self.batch = batch * times
        self.groups = len(rows)
        self._cycles = [_Cycle(r, seed, f"sampling/domain/{n}") for r, n in zip(rows, names, strict=True)]

    def __call__(self, step: int) -> RowIds:
        return np.concatenate([cycle.whole_batch(step, self.batch) for cycle in self._cycles])


class ClassBalanced:
    """(batch,) rows a step with P(class) = 1/|Y^tr| and P(image) = 1/(|Y^tr| n_c), for cRT (Kang et al., 2020).

    `labels` has the label of each of `rows`. In each round every class has one turn, in a new random order, and gives
    PER_CLASS images from its endless shuffled passes; classes without images have no turn. Batches are consecutive
    pieces of this sequence, each then shuffled. A position in the sequence determines how often each class was drawn
    before, so that no step depends on earlier ones.
    """

    groups = 1

    def __init__(self, rows: RowIds, labels: NDArray[np.int64], batch: int, seed: int) -> None:
        if len(rows) != len(labels):
            raise DataError(
                expected("labels", "one per row", f"{len(labels)} for {len(rows)} rows", "Pass manifest.labels[rows].")
            )
        _check(len(rows), 1, "the pool of all source domains")
        self.batch = batch
        self._seed = seed
        present = np.unique(labels)
        self._images = [_Cycle(rows[labels == c], seed, f"sampling/class/{c}") for c in present]
        self._turns = _Cycle(np.arange(len(present)), seed, "sampling/classes")

    def __call__(self, step: int) -> RowIds:
        rows = [self._row(position) for position in range(step * self.batch, (step + 1) * self.batch)]
        shuffle = numpy_generator(self._seed, "sampling/shuffle", step).permutation(self.batch)
        return np.array(rows, dtype=np.int64)[shuffle]

    def _row(self, position: int) -> int:
        turn, index = divmod(position, PER_CLASS)
        drawn_before = (turn // len(self._images)) * PER_CLASS
        return self._images[self._turns.at(turn)].at(drawn_before + index)


def _check(size: int, batch: int, what: str, times: int = 1) -> None:
    if batch < 1:
        raise DataError(expected("the batch", "at least 1", batch, "Use data.batch_size=16."))
    if size < batch * times:
        asked = f"the batch of {batch}" if times == 1 else f"the {times} batches of {batch} that a step takes"
        remedy, most = "Add training images, or hold that domain out (data.held_out).", size // times
        if most >= 2:  # BatchNorm needs two
            remedy = f"Use data.batch_size={most}, or less."
        raise DataError(expected(asked, f"no larger than {what}", f"{size} images in it", remedy))
