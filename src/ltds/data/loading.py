"""Row ids to batches on a device: pure in the step, prefetched by threads, shared out by rank."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ConfigError, DataError, expected
from ltds.core.rng import generator
from ltds.core.task import Task
from ltds.core.types import Batch
from ltds.data.cache import ImageCache
from ltds.data.manifest import Manifest
from ltds.data.prefetch import prefetch
from ltds.data.sampling import Sampler
from ltds.data.transforms import EvalTransform, TrainTransform

CPU = torch.device("cpu")


class Loader:
    """Training batches, addressable by step.

    Of `world` ranks, each gets its contiguous share of every domain's batch; the shares together are the batch of one
    process, to the bit, as the augmentation of the whole batch is drawn, at (seed, "augment", step), on every rank.
    """

    def __init__(
        self,
        cache: ImageCache,
        manifest: Manifest,
        task: Task,
        sampler: Sampler,
        transform: TrainTransform,
        seed: int,
        device: torch.device = CPU,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        _check_pair(cache, manifest)
        if sampler.batch % world:
            rule = f"a multiple of the number of processes ({world})"
            remedy = f"Use --set data.batch_size={-(-sampler.batch // world) * world}."
            raise ConfigError(expected("data.batch_size", rule, sampler.batch, remedy))
        self._cache, self._manifest, self._sampler = cache, manifest, sampler
        self._transform, self._seed, self._device = transform, seed, device
        self._sources = np.array([_index(domain, task) for domain in manifest.domains], dtype=np.int64)
        share = sampler.batch // world
        places = np.arange(sampler.groups * sampler.batch).reshape(sampler.groups, sampler.batch)
        self._own = places[:, rank * share : (rank + 1) * share].ravel()

    def batch(self, step: int) -> Batch:
        """This rank's part of the step's batch, on the device."""
        sampled = self._sampler(step)
        rows = sampled[self._own]
        draws = self._transform.draw(len(sampled), generator(self._seed, "augment", step))
        images = self._transform.apply([self._cache.image(row) for row in rows], draws[torch.from_numpy(self._own)])
        domains = self._sources[self._manifest.domain_ids[rows]]
        assert (domains >= 0).all(), "the sampler drew rows of the held-out domain"
        labels = self._manifest.labels[rows]
        return _sent(Batch(images, *(torch.from_numpy(column) for column in (labels, domains, rows))), self._device)

    def batches(self, start: int, stop: int, threads: int | None = None) -> Iterator[Batch]:
        """The batches of steps start..stop-1, made in advance by up to `threads` threads.

        None: as many as pay (`pays_to_prefetch`). The values are those of `batch(step)`. Leaving the loop early, or an
        exception, leaves no thread behind.
        """
        threads = pays_to_prefetch(self._device) if threads is None else threads
        return prefetch(self.batch, range(start, stop), threads=threads, window=threads)


def pays_to_prefetch(device: torch.device) -> int:
    """How many threads are to make batches ahead: none where torch itself uses every core.

    There they hold up each operation of the step, whose threads wait for one another: on two cores they cost 12 % of a
    step at 64 px, batches made between steps 2 % (benchmarks/loader.py). Evaluation does not mind them.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if device.type == "cpu" and torch.get_num_threads() >= cores else 2


def evaluation_batches(
    cache: ImageCache,
    manifest: Manifest,
    rows: NDArray[np.int64],
    transform: EvalTransform,
    batch: int = 256,
    device: torch.device = CPU,
    threads: int = 2,
) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
    """Images (n,3,size,size) on the device and their row ids (n,), in the order of `rows`, prefetched."""
    _check_pair(cache, manifest)

    def images(part: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
        pixels = transform([cache.image(row) for row in part])
        return _moved(pixels, device), part

    parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    return prefetch(images, parts, threads=threads, window=threads)


def _index(domain: str, task: Task) -> int:
    return task.sources.index(domain) if domain in task.sources else -1


def _check_pair(cache: ImageCache, manifest: Manifest) -> None:
    if cache.checksum != manifest.checksum:
        rule = f"that of manifest '{manifest.name}' ({manifest.checksum[:12]}...)"
        remedy = "Open it with ImageCache.open(manifest, size)."
        raise DataError(expected("the image cache", rule, f"the cache of {cache.checksum[:12]}...", remedy))


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; through pinned memory to CUDA, so that the copy overlaps with computing."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _sent(batch: Batch, device: torch.device) -> Batch:
    return Batch(*(_moved(t, device) for t in (batch.images, batch.labels, batch.domains, batch.rows)))
