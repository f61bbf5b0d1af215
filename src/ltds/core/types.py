"""The values that packages pass to each other, as frozen dataclasses.

Letters of tensor shapes, everywhere in this project:
N samples, C classes, K source domains, D features, S semantic width, H x W pixels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.devices import to_device
from ltds.core.rng import generator

HostColumn = NDArray[np.int64]
"""(N,) one number for each sample, in the memory of the host."""


@dataclass(frozen=True)
class Batch:
    """Images on a device with their labels, domains and manifest rows.

    images (N,3,H,W) float; labels (N,); domains (N,), indices into `Task.sources`; rows (N,), manifest row ids.
    `host_labels` and `host_domains` are in the memory of the host: choosing samples by them does not make it wait for a
    GPU. A batch made by `from_host` has them, and so have its parts; others fetch them at their first use.
    """

    images: Tensor
    labels: Tensor
    domains: Tensor
    rows: Tensor

    @classmethod
    def from_host(cls, images: Tensor, labels: HostColumn, domains: HostColumn, rows: HostColumn) -> Batch:
        """A batch on the device of its images, whose other columns come from the memory of the host."""
        columns = (to_device(torch.from_numpy(column), images.device) for column in (labels, domains, rows))
        return cls(images, *columns)._knowing(labels, domains)

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def of(self, *domains: int) -> Batch:
        """The samples of these source domains, in their order in the batch."""
        of_domains = (self.host_domains[:, None] == np.array(domains)).any(axis=1)  # four times as fast as np.isin
        return self._chosen(np.flatnonzero(of_domains))

    def split(self, parts: int) -> tuple[Batch, ...]:
        """`parts` equal batches, each with its share of every domain: as many as `Method.batches_per_step` says."""
        domains = self.host_domains
        part = np.zeros_like(domains)
        for domain in np.unique(domains):
            mask = domains == domain
            part[mask] = np.arange(mask.sum()) * parts // mask.sum()
        return tuple(self._chosen(np.flatnonzero(part == i)) for i in range(parts))

    @cached_property
    def host_labels(self) -> HostColumn:
        """(N,) the labels in the memory of the host."""
        return self.labels.cpu().numpy()

    @cached_property
    def host_domains(self) -> HostColumn:
        """(N,) the domains in the memory of the host."""
        return self.domains.cpu().numpy()

    def _knowing(self, labels: HostColumn, domains: HostColumn) -> Batch:
        """This batch, which need not fetch these from its device."""
        vars(self).update(host_labels=labels, host_domains=domains)  # as its cached properties would
        return self

    def _chosen(self, samples: NDArray[np.int64]) -> Batch:
        """The samples at these positions."""
        index = to_device(torch.from_numpy(samples), self.domains.device)
        columns = (column[index] for column in (self.images, self.labels, self.domains, self.rows))
        return Batch(*columns)._knowing(self.host_labels[samples], self.host_domains[samples])


@dataclass(frozen=True)
class Prediction:
    """What a model says of N images: logits (N,C), features (N,D)."""

    logits: Tensor
    features: Tensor


@dataclass(frozen=True)
class StepLoss:
    """A step's objective and its named parts (scalars, before weighting), for the journal and for NaN reports."""

    total: Tensor
    terms: Mapping[str, Tensor] = field(default_factory=dict)


def first_step_after(share: float, steps: int) -> int:
    """The first of these steps (from 0) after a share of them: 55 of 100 for .55, although .55 is not exact."""
    return math.ceil(round(share * steps, 9))


@dataclass(frozen=True)
class Clock:
    """How far a phase of training has come (`step`, from 0, of `total`), and the source of its random numbers."""

    seed: int
    step: int
    total: int
    steps_per_epoch: int
    phase: str = "main"

    @property
    def epoch(self) -> int:
        return self.step // self.steps_per_epoch

    def generator(self, stream: str) -> torch.Generator:
        """A generator at (seed, phase/stream, step): asking twice gives the same draws twice."""
        return generator(self.seed, f"{self.phase}/{stream}", self.step)
