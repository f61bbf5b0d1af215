"""A random part of the classes that stands for all of them in the losses between classes.

L_S2S and L_S2Z sum over C classes twice: a mean over *anchors*, and for every anchor a sum over *negatives* in the
denominator of a softmax. A sample has the b classes of the batch, which are certain to be in it (only their prototypes
have a gradient to the backbone), and r of the other C - b, drawn without replacement.

- As an anchor, a class of the batch counts once, a drawn one (C - b) / r times. The mean over anchors is unbiased.
- As a negative of an anchor of the batch, a drawn class counts (C - b) / r times; of a drawn anchor, which is no
  negative of itself, (C - b - 1) / (r - 1) times. Given that its anchor is in the sample, the expected denominator is
  that of all classes. Without classes of the batch this is the factor (C - 1) / (M - 1).
- The loss takes the logarithm of a denominator, and its gradient divides by it: these are consistent (exact as r
  grows to C - b) but not unbiased; by Jensen's inequality the expected loss lies below the full one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ltds.core.devices import to_device, widest_float


@dataclass(frozen=True)
class ClassSample:
    """M classes for C: classes (M,), in ascending order the `certain` ones of the batch, then those drawn; C `total`.

    M < C, so at least one class is left out, and at least two are drawn.
    """

    classes: Tensor
    certain: int
    total: int

    @cached_property
    def host_classes(self) -> Tensor:
        """(M,) the classes on the CPU."""
        return self.classes.cpu()

    @property
    def drawn(self) -> Tensor:
        """(M,) which classes were drawn."""
        return torch.arange(len(self.classes), device=self.classes.device) >= self.certain

    @property
    def anchor_weights(self) -> Tensor:
        """(M,) how much each class counts in a mean over the M anchors; their own mean is 1."""
        size, others = len(self.classes), self.total - self.certain
        return self._by_origin(1.0, others / (size - self.certain)) * (size / self.total)

    @property
    def factors(self) -> Tensor:
        """(M,) for each anchor, how often a drawn class counts among its negatives; one of the batch counts once."""
        others, r = self.total - self.certain, len(self.classes) - self.certain
        return self._by_origin(others / r, (others - 1) / (r - 1))

    @property
    def log_weights(self) -> Tensor:
        """(M,M) the logarithm of how often each class (column) counts as a negative of each anchor (row)."""
        return self.factors.log()[:, None] * self.drawn

    def _by_origin(self, of_batch: float, of_drawn: float) -> Tensor:
        """(M,) one value for classes of the batch and another for drawn ones."""
        values = torch.full_like(self.drawn, of_batch, dtype=widest_float(self.drawn.device))
        return values.masked_fill_(self.drawn, of_drawn)


def draw_classes(
    batch: Tensor, total: int, size: int, generator: torch.Generator, device: torch.device | None = None
) -> ClassSample | None:
    """A sample of `size` classes out of `total`, or None if it would be all: batch, labels of any shape.

    If the batch has many classes the sample is larger: at least half of `size`, and at least two, are drawn, because
    few classes that stand for many make a noisy estimate. Draws are made on the CPU: the same on every device.
    `device`: of the sample, if not that of `batch`. Give `batch` on the CPU: for labels on a GPU the host has to wait.
    """
    in_batch = torch.zeros(total, dtype=torch.bool).index_fill_(0, batch.flatten().cpu(), True)
    certain, others = in_batch.nonzero()[:, 0], (~in_batch).nonzero()[:, 0]
    count = max(size - len(certain), (size + 1) // 2, 2)
    if count >= len(others):
        return None
    chosen = torch.randperm(len(others), generator=generator)[:count].sort().values
    classes = torch.cat([certain, others[chosen]])
    sample = ClassSample(to_device(classes, device or batch.device), len(certain), total)
    vars(sample)["host_classes"] = classes  # as the cached property would
    return sample
