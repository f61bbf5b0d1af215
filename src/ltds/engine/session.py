"""Session: everything a run needs in memory, put together by `assemble`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.ranks import ALONE, Ranks
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.data.inputs import NetworkInputs
from ltds.data.loading import Loader, evaluation_batches
from ltds.data.manifest import Manifest
from ltds.engine.averaging import WeightAverage
from ltds.engine.config import RunConfig
from ltds.engine.fixed_state import StateLayout
from ltds.engine.frozen import FrozenRecord
from ltds.engine.phases import ScheduledPhase
from ltds.engine.swad import WeightWindow
from ltds.methods.base import Method
from ltds.nn.precision import Precision
from ltds.nn.sharing import BackboneSharing
from ltds.semantics.embeddings import ClassEmbeddings


@dataclass(frozen=True)
class Session:
    """A method on its device with its optimizer, its task and its data."""

    config: RunConfig
    manifest: Manifest
    task: Task
    embeddings: ClassEmbeddings | None
    inputs: NetworkInputs
    method: Method
    optimizer: torch.optim.Optimizer
    average: WeightAverage | WeightWindow
    phases: tuple[ScheduledPhase, ...]  # the phases of the run
    loaders: tuple[Loader, ...]  # one for each of them
    learnable: frozenset[str]  # names of parameters that some phase may train
    layout: StateLayout  # the parameters and buffers that the method began with
    frozen: FrozenRecord | None  # the network between images and inputs, where there is one
    device: torch.device
    identity: str  # hash of dataset, class embeddings and settings: what a checkpoint belongs to
    former_identities: tuple[str, ...] = ()  # the same in checkpoints of earlier versions
    precision: Precision = "float32"  # in which backbones compute
    ranks: Ranks = ALONE  # the processes that train together
    sharing: BackboneSharing | None = None  # how they share the backbones' work; None: this process is alone

    @property
    def steps(self) -> int:
        """The length of the run, all phases together."""
        return self.phases[-1].stop

    def phase_at(self, step: int) -> ScheduledPhase:
        """The phase that a step belongs to."""
        return next(scheduled for scheduled in self.phases if step < scheduled.stop)

    def clock(self, step: int) -> Clock:
        """How far the phase of a step has come."""
        scheduled, schedule = self.phase_at(step), self.config.schedule
        name, seed = scheduled.phase.name, self.config.run.seed
        return Clock(seed, step - scheduled.start, scheduled.steps, schedule.steps_per_epoch, name)

    def batch(self, step: int) -> Batch:
        """The training batch of a step."""
        loader = self.loaders[self.phases.index(self.phase_at(step))]
        return loader.whole(loader.batch(step), step)

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The training batches of steps of one phase, prefetched."""
        loader = self.loaders[self.phases.index(self.phase_at(start))]
        return (loader.whole(share, step) for step, share in enumerate(loader.batches(start, stop), start))

    def own(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that this rank evaluates: its share, or all of them where there are fewer than ranks."""
        return rows if len(rows) < self.ranks.world else rows[self.ranks.share(len(rows))]

    def of_all(self, values: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """(N,...) the values for all rows, of which this rank has computed those of its `own`."""
        return values if len(values) == len(rows) else self.ranks.gathered(values, len(rows))

    def shared_out(self) -> AbstractContextManager[None]:
        """Inside, each rank runs the backbones on its share of the rows that they are given."""
        return nullcontext() if self.sharing is None else self.sharing.active()

    def labelled(self, split: str) -> Iterator[Batch]:
        """A split's images without augmentation, with their labels and source domains."""
        sources = [self.task.sources.index(d) if d in self.task.sources else -1 for d in self.manifest.domains]
        for images, rows in self.images(split):
            domains = np.array(sources, dtype=np.int64)[self.manifest.domain_ids[rows]]
            yield Batch.from_host(images, self.manifest.labels[rows], domains, rows)

    def rows(self, split: str) -> NDArray[np.int64]:
        """Row ids of a split: of the source domains for "train" and "val", of all domains for "test"."""
        if split == "test":
            return self.manifest.test_rows(self.task.held_out)
        if self.task.held_out is None:
            return self.manifest.rows(split)
        return np.sort(np.concatenate([self.manifest.rows(split, domain) for domain in self.task.sources]))

    def images(self, split: str) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
        """A split's images without augmentation, with their row ids."""
        return self.images_of(self.rows(split))

    def images_of(self, rows: NDArray[np.int64]) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
        """The images of these rows without augmentation, with their row ids."""
        return evaluation_batches(self.inputs, self.manifest, rows, device=self.device)
