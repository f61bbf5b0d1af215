"""What LT-DS knows about its classes by their names: embeddings and semantic neighbours."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from ltds.core.errors import ConfigError
from ltds.losses.class_sample import ClassSample
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.problem import Problem
from ltds.stats.neighbours import semantic_neighbours
from ltds.stats.prototypes import BlendedPrototypes


class ClassSemantics(nn.Module):
    """Embeddings s of R classes: of all classes or, with `hide_open_names`, of those with training images.

    Everything here is a buffer that moves with the model but is not saved, because nothing is learned. `host_classes`
    and `host_row` stay on the CPU: looking at them there does not make the host wait for a GPU.
    """

    vectors: Tensor  # s (R,S), unit rows; S = 0 if no setting uses embeddings
    classes: Tensor  # (R,) the class of each row
    row: Tensor  # (C,) the row of each class
    neighbours: Tensor  # (C,k) the classes nearest to each class, itself first
    log_n: Tensor  # (K,R) log counts of the classes that have rows

    def __init__(self, config: MetaLtdsConfig, problem: Problem, log_n: Tensor) -> None:
        super().__init__()
        task = problem.task
        classes = torch.tensor(task.known_classes if config.hide_open_names else range(len(task.classes)))
        names = [task.classes[c] for c in classes]
        vectors = problem.class_vectors(names) if config.uses_embeddings else torch.empty(len(names), 0)
        row = torch.zeros(len(task.classes), dtype=torch.long).index_copy(0, classes, torch.arange(len(classes)))
        buffers = {"vectors": vectors, "classes": classes, "row": row, "log_n": log_n[:, classes]}
        buffers["neighbours"] = _neighbours(config, vectors, classes, len(task.classes))
        for name, value in buffers.items():
            self.register_buffer(name, value, persistent=False)
        self.host_classes, self.host_row = classes.clone(), row.clone()

    def vectors_of(self, sample: ClassSample | None) -> Tensor:
        """The rows of s that are in a sample, or all of them."""
        return self.vectors if sample is None else self.vectors[sample.classes]

    def classes_of(self, sample: ClassSample | None) -> Tensor:
        """The classes of those rows."""
        return self.classes if sample is None else self.classes[sample.classes]

    def select(self, prototypes: BlendedPrototypes, sample: ClassSample | None = None) -> BlendedPrototypes:
        """The prototypes of the R classes, or of those rows that are in a sample."""
        classes = self.classes_of(sample)
        if len(classes) == len(self.row):
            return prototypes
        host_classes = self.host_classes if sample is None else self.host_classes[sample.host_classes]
        value, present = prototypes.value[:, classes], prototypes.present[:, host_classes]
        return replace(prototypes, value=value, present=present)

    def cosines(self) -> Tensor:
        """(C,C) cosines between class embeddings, NaN for a class without one."""
        result = self.vectors.new_full((len(self.row), len(self.row)), torch.nan)
        result[self.classes[:, None], self.classes] = self.vectors @ self.vectors.T
        return result


def _neighbours(config: MetaLtdsConfig, vectors: Tensor, classes: Tensor, count: int) -> Tensor:
    """(C,k) the k nearest classes of each class; a class without an embedding has only itself, k times."""
    k = config.neighbours
    if k > len(classes) and config.weights.augmentation:
        raise ConfigError(
            f"Expected method.neighbours to be at most the {len(classes)} classes that have embeddings, but got {k}. "
            f"Set method.neighbours={len(classes)}."
        )
    neighbours = torch.arange(count)[:, None].repeat(1, k)
    if config.borrows:
        neighbours[classes] = classes[semantic_neighbours(vectors, k)]
    return neighbours
