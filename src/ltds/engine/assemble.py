"""From a config to a session: everything a run needs, put together once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltds.core.errors import ConfigError, DataError
from ltds.core.progress import SILENT, Progress
from ltds.core.rng import reseed_global
from ltds.core.task import Task
from ltds.core.types import Batch
from ltds.data.cache import ImageCache
from ltds.data.loading import Loader, evaluation_batches
from ltds.data.manifest import Manifest
from ltds.data.sampling import ClassBalanced, DomainBalanced, Sampler
from ltds.data.transforms import EvalTransform, TrainTransform
from ltds.engine.averaging import WeightAverage
from ltds.engine.config import RunConfig
from ltds.engine.identity import identity
from ltds.engine.optim import build_optimizer
from ltds.engine.phases import ScheduledPhase, schedule_phases
from ltds.engine.semantics import load_embeddings
from ltds.engine.tensorboard import require_tensorboard
from ltds.methods.base import Method, Phase
from ltds.nn.backbones import build_backbone, feature_dim_of
from ltds.semantics.embeddings import ClassEmbeddings


@dataclass(frozen=True)
class Session:
    """A method on its device with its optimizer, its task and its data."""

    config: RunConfig
    manifest: Manifest
    task: Task
    cache: ImageCache
    method: Method
    optimizer: torch.optim.Optimizer
    average: WeightAverage
    phases: tuple[ScheduledPhase, ...]  # the phases of the run
    loaders: tuple[Loader, ...]  # one for each of them
    learnable: frozenset[str]  # parameters that some phase may train
    device: torch.device
    identity: str  # what a checkpoint belongs to: the dataset, its semantics, every setting but those of the machine

    @property
    def steps(self) -> int:
        """The length of the run, all phases together."""
        return self.phases[-1].stop

    def phase_at(self, step: int) -> ScheduledPhase:
        """The phase that a step belongs to."""
        return next(scheduled for scheduled in self.phases if step < scheduled.stop)

    def batch(self, step: int) -> Batch:
        """The training batch of a step."""
        return self.loaders[self.phases.index(self.phase_at(step))].batch(step)

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The training batches of steps of one phase, made ahead."""
        return self.loaders[self.phases.index(self.phase_at(start))].batches(start, stop)

    def labelled(self, split: str) -> Iterator[Batch]:
        """A split's images as the model sees them at test, with their labels and sources."""
        sources = [self.task.sources.index(d) if d in self.task.sources else -1 for d in self.manifest.domains]
        for images, rows in self.images(split):
            labels = torch.from_numpy(self.manifest.labels[rows]).to(self.device)
            domains = torch.tensor(sources)[torch.from_numpy(self.manifest.domain_ids[rows])].to(self.device)
            yield Batch(images, labels, domains, torch.from_numpy(rows).to(self.device))

    def rows(self, split: str) -> NDArray[np.int64]:
        """Row ids of a split: of the source domains for "train" and "val", of all domains for "test"."""
        if split == "test" or self.task.held_out is None:
            return self.manifest.rows(split)
        return np.sort(np.concatenate([self.manifest.rows(split, domain) for domain in self.task.sources]))

    def images(self, split: str) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
        """The split's images as the model sees them at test, with their row ids."""
        return self.images_of(self.rows(split))

    def images_of(self, rows: NDArray[np.int64]) -> Iterator[tuple[Tensor, NDArray[np.int64]]]:
        """The images of these rows as the model sees them at test, with their row ids."""
        transform = EvalTransform(size=self.config.data.size)
        return evaluation_batches(self.cache, self.manifest, rows, transform, device=self.device)


def assemble(config: RunConfig, manifest: Manifest, progress: Progress = SILENT) -> Session:
    """A fresh session: weights drawn at the address (seed, "init"), data cached, nothing trained yet."""
    if config.run.threads:
        torch.set_num_threads(config.run.threads)
    device = choose_device(config.run.device)
    if config.run.tensorboard:
        require_tensorboard()
    task = manifest.task(config.data.held_out or None)
    if not len(manifest.rows("test")):
        raise DataError(
            f"Expected '{manifest.name}' to have test images, but all of its images are for training and validation. "
            "Mark some with the split 'test' in manifest.csv, so that the outcome can be measured."
        )
    cache = ImageCache.open(manifest, config.data.decoded_side, progress=progress)
    method = build_method(config, task, load_embeddings(config, manifest, task)).to(device)
    if method.channels_last:  # convolutions follow the layout of their weights: 0.67 to 0.9 of the time on a CPU
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    phases = schedule_phases(method.phases(), config.schedule)
    if method.needs_validation and not any(len(manifest.rows("val", source)) for source in task.sources):
        raise DataError(
            f"Expected validation images in the source domains for method '{config.method_name}', which chooses a "
            "setting on them, but got none. Mark some training images with the split 'val' in manifest.csv."
        )
    return Session(
        config=config,
        manifest=manifest,
        task=task,
        cache=cache,
        method=method,
        optimizer=build_optimizer(method, config.optimizer),
        average=WeightAverage(config.averaging),
        phases=phases,
        loaders=tuple(_loader(config, manifest, task, cache, device, method, s.phase) for s in phases),
        learnable=frozenset(name for name, p in method.named_parameters() if p.requires_grad),
        device=device,
        identity=identity(config, manifest),
    )


def build_method(config: RunConfig, task: Task, embeddings: ClassEmbeddings | None) -> Method:
    """The method with its first weights, a pure function of the config and the task."""
    reseed_global(config.run.seed, "init")
    backbone = build_backbone(config.backbone)
    features = feature_dim_of(backbone, config.data.size)
    return config.preset.method(config.method, task=task, embeddings=embeddings, backbone=backbone, features=features)


def choose_device(name: str) -> torch.device:
    """The device of this name; "auto" takes an accelerator where there is one."""
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        return torch.device(next((d for d in ("cuda", "mps") if available[d]), "cpu"))
    if not available[name]:
        usable = ", ".join(d for d, there in available.items() if there)
        raise ConfigError(
            f"Expected run.device to be a device of this machine ({usable}), but got '{name}'. Use run.device=auto."
        )
    return torch.device(name)


def _loader(
    config: RunConfig,
    manifest: Manifest,
    task: Task,
    cache: ImageCache,
    device: torch.device,
    method: Method,
    phase: Phase,
) -> Loader:
    rows = [manifest.rows("train", source) for source in task.sources]
    batch, seed, times = config.data.batch_size, config.run.seed, method.batches
    sampler: Sampler = DomainBalanced(rows, batch, seed, task.sources, times)
    if phase.sampler == "classes":
        pool = np.concatenate(rows)
        sampler = ClassBalanced(pool, manifest.labels[pool], len(rows) * times * batch, seed)
    transform = TrainTransform(size=config.data.size, **config.data.augmentation.model_dump())
    return Loader(cache, manifest, task, sampler, transform, seed, device=device)
