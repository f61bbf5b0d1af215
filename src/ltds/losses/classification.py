"""What every criterion is: a loss of logits and labels that may know the class counts of each source domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ltds.core.config import Settings

CountsTable = Tensor | NDArray[np.int64] | Sequence[Sequence[int]]
CountsNeeded = Literal["none", "pooled", "domain"]


class ClassificationLoss(nn.Module):
    """Losses (N,) of logits (N,C), labels (N,) and source domains (N,).

    A subclass is built as Loss(domain_counts, **settings): domain_counts (K,C) are the training images of each class
    in each source, and each setting of `Config` is a keyword argument.
    """

    Config: ClassVar[type[Settings]] = Settings  # none, unless a loss has some

    @classmethod
    def counts_needed(cls, settings: Mapping[str, Any]) -> CountsNeeded:
        """Whether training images are needed in no source, in some source ("pooled") or in every one ("domain")."""
        return "none"

    def forward(
        self, logits: Tensor, labels: Tensor, domains: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """(N,) one loss per sample. Random numbers, if any, come from `generator`."""
        raise NotImplementedError


def as_counts(domain_counts: CountsTable) -> Tensor:
    """(K,C) counts as a float tensor."""
    return torch.as_tensor(domain_counts, dtype=torch.get_default_dtype())
