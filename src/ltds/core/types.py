"""The values that packages pass to each other, as frozen dataclasses.

Letters of tensor shapes, everywhere in this project:
N samples, C classes, K source domains, D features, S semantic width, H x W pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ltds.core.rng import generator


@dataclass(frozen=True)
class Batch:
    """Images on a device with their labels, domains and manifest rows.

    images (N,3,H,W) float; labels (N,); domains (N,), indices into `Task.sources`; rows (N,), manifest row ids.
    """

    images: Tensor
    labels: Tensor
    domains: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def of(self, *domains: int) -> Batch:
        """The samples of these source domains, in their order in the batch."""
        mask = torch.isin(self.domains, torch.tensor(domains, device=self.domains.device))
        return Batch(self.images[mask], self.labels[mask], self.domains[mask], self.rows[mask])

    def split(self, parts: int) -> tuple[Batch, ...]:
        """`parts` equal batches, each with its share of every domain: as many as `Method.batches_per_step` says."""
        index = torch.zeros_like(self.domains)
        for domain in set(self.domains.tolist()):
            mask = self.domains == domain
            index[mask] = torch.arange(int(mask.sum()), device=index.device) * parts // int(mask.sum())
        masks = [index == i for i in range(parts)]
        return tuple(Batch(self.images[m], self.labels[m], self.domains[m], self.rows[m]) for m in masks)


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


@dataclass(frozen=True)
class Clock:
    """How far a phase of training is: `step` (from 0) of `total`; and where random draws come from."""

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
