"""Problem: everything a method is built from besides its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from ltds.core.errors import ConfigError
from ltds.core.task import Task
from ltds.semantics.embeddings import ClassEmbeddings


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """The task, the network that computes features (N,D) with D = `feature_dim`, and the class embeddings.

    Nothing else of the dataset is read, so a saved task and saved embeddings rebuild a method. `embeddings` may be None
    for a method that does not use them.
    """

    task: Task
    backbone: nn.Module
    feature_dim: int
    embeddings: ClassEmbeddings | None = None

    def class_vectors(self, classes: Sequence[str]) -> Tensor:
        """(R,S) the embeddings of these R classes, in this order, with unit rows."""
        if self.embeddings is None:
            raise ConfigError(
                "Expected class embeddings for these settings, but got none. Give the problem its embeddings, or set "
                "the weights of the semantic losses to 0."
            )
        return self.embeddings.aligned_to(classes).vectors
