"""From row ids to batches on a device: a pure function of the step, prefetched by threads, divided among ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.devices import to_device
from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.processor import cores
from ltds.core.ranks import ALONE, Ranks
from ltds.core.task import Task
from ltds.core.types import Batch
from ltds.data.inputs import NetworkInputs
from ltds.data.manifest import Manifest
from ltds.data.prefetch import prefetch
from ltds.data.sampling import Sampler

CPU = torch.device("cpu")
EVALUATION_THREADS = 2


class Loader:
    """Training batches, by step.

    Each of `ranks` makes its contiguous share of the `count` images of a step. All shares together are, bit for bit,
    the batch of one process, because every rank draws the augmentation of the whole batch, at (seed, "augment", step).
    """

    def __init__(
        self,
        inputs: NetworkInputs,
        manifest: Manifest,
        task: Task,
        sampler: Sampler,
        seed: int,
        device: torch.device = CPU,
        ranks: Ranks = ALONE,
    ) -> None:
        _check_pair(inputs, manifest)
        self.count = sampler.groups * sampler.batch
        if self.count < ranks.world:
            rule = f"at most the {self.count} images of a step"
            raise ConfigError(expected("run.ranks", rule, ranks.world, f"Use run.ranks={self.count}, or less."))
        self._inputs, self._manifest, self._sampler, self._ranks = inputs, manifest, sampler, ranks
        self._seed, self._device = seed, device
        self._sources = np.array([_index(domain, task) for domain in manifest.domains], dtype=np.int64)
        self._share = np.arange(self.count)[ranks.share(self.count)]

    def batch(self, step: int) -> Batch:
        """This rank's share of the step's batch, on the device."""
        sampled = self._sampler(step)
        images = self._inputs.training(sampled, self._share, self._seed, step)
        return self._described(to_device(images, self._device), sampled[self._share])

    def whole(self, share: Batch, step: int) -> Batch:
        """The step's batch, of which each rank has loaded its share: the same in all ranks, and as one would load it.

        The images of the others are received; which rows they are, every rank's sampler knows.
        """
        if self._ranks.alone:
            return share
        return self._described(self._ranks.gathered(share.images, self.count), self._sampler(step))

    def _described(self, images: Tensor, rows: NDArray[np.int64]) -> Batch:
        """The images of these rows, with labels and domains."""
        domains = self._sources[self._manifest.domain_ids[rows]]
        assert (domains >= 0).all(), "the sampler drew rows of the held-out domain"
        return Batch.from_host(images, self._manifest.labels[rows], domains, rows)

    def batches(self, start: int, stop: int, threads: int | None = None) -> Iterator[Batch]:
        """The batches of steps start..stop-1, made in advance by up to `threads` threads.

        None: as many as are worth it (`threads_worth_using`). The values are those of `batch(step)`. No thread is left
        when the loop ends, even by `break` or an exception.
        """
        threads = threads_worth_using(self._device, self._ranks.world) if threads is None else threads
        return prefetch(self.batch, range(start, stop), threads=threads, window=threads)


def threads_worth_using(device: torch.device, processes: int = 1) -> int:
    """How many threads should make batches in advance: none where torch itself uses every core.

    There they slow down each operation of the step, whose threads wait for one another: on two cores they cost 12 % of
    a step at 64 px, batches made between steps 2 % (benchmarks/loader.py). Evaluation is not slowed down.
    `processes`: how many like this one share the cores.
    """
    return 0 if device.type == "cpu" and torch.get_num_threads() * processes >= cores() else 2


def evaluation_batches(
    inputs: NetworkInputs,
    manifest: Manifest,
    rows: NDArray[np.int64],
    batch_size: int = 256,
    device: torch.device = CPU,
) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
    """Inputs (n,...) on the device and their row ids (n,), in the order of `rows`, prefetched."""
    _check_pair(inputs, manifest)

    def images(batch_rows: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
        return to_device(inputs.evaluation(batch_rows), device), batch_rows

    batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    return prefetch(images, batches, threads=EVALUATION_THREADS, window=EVALUATION_THREADS)


def _index(domain: str, task: Task) -> int:
    return task.sources.index(domain) if domain in task.sources else -1


def _check_pair(inputs: NetworkInputs, manifest: Manifest) -> None:
    if inputs.checksum != manifest.checksum:
        rule = f"the one of manifest '{manifest.name}' ({manifest.checksum[:12]}...)"
        remedy = "Open it with ImageCache.open(manifest, size)."
        raise DataError(expected("the image cache", rule, f"the cache of {inputs.checksum[:12]}...", remedy))
