"""From settings and a dataset to a session."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch

from ltds.core.progress import SILENT, Progress
from ltds.core.ranks import ALONE, Ranks
from ltds.core.task import Task
from ltds.data.cache import ImageCache
from ltds.data.features import FeatureVectors
from ltds.data.inputs import FeatureInputs, ImageInputs, NetworkInputs, training_scale
from ltds.data.loading import Loader
from ltds.data.manifest import Manifest
from ltds.data.sampling import ClassBalanced, DomainBalanced, Sampler
from ltds.data.transforms import EvalTransform, TrainTransform
from ltds.engine.averaging import WeightAverage, statistics_of
from ltds.engine.build import build_method
from ltds.engine.compiling import compile_backbones
from ltds.engine.config import RunConfig
from ltds.engine.device import choose_device
from ltds.engine.fixed_state import layout_of
from ltds.engine.frozen import FrozenRecord, activation_inputs, extractor_of
from ltds.engine.identity import former_identities, identity
from ltds.engine.optim import build_optimizer
from ltds.engine.phase_checks import checked_phases
from ltds.engine.phases import schedule_phases
from ltds.engine.precision import choose_precision, require_working
from ltds.engine.semantics import load_embeddings
from ltds.engine.session import Session
from ltds.engine.swad import WeightWindow
from ltds.engine.tensorboard import require_tensorboard
from ltds.engine.threads import use_threads
from ltds.engine.trainable import require_validation, trainable_task
from ltds.methods.base import Method, Phase
from ltds.nn.precision import Precision, compute_in
from ltds.nn.sharing import BackboneSharing


def assemble(
    config: RunConfig,
    manifest: Manifest,
    progress: Progress = SILENT,
    ranks: Ranks = ALONE,
    precision: Precision | None = None,
) -> Session:
    """A fresh session: weights drawn at the address (seed, "init"), images cached, nothing trained yet.

    `ranks`: which of the processes that train together this one is. `precision`: that of the run, where it was decided
    before.
    """
    use_threads(config.run.threads)
    device = choose_device(config.run.device, ranks)
    if config.run.tensorboard:
        require_tensorboard()
    task = trainable_task(manifest, config.data.held_out or None)
    require_validation(config, manifest)
    inputs, frozen = network_inputs(config, manifest, task, device, progress)
    embeddings = load_embeddings(config, manifest, task)
    dim = inputs.dim if isinstance(inputs, FeatureInputs) else None
    method = build_method(config, task, embeddings, device, input_dim=dim)
    phases = schedule_phases(checked_phases(method), config.schedule)
    if precision is None:
        sample = manifest.rows("train", task.sources[0])[: config.data.batch_size]
        images = partial(inputs.evaluation, sample)
        precision = choose_precision(config.run.precision, method.backbone, device, images)
    require_working(precision, device)
    compute_in(precision, method)
    if config.run.compile:
        compile_backbones(method, ranks)
    return Session(
        config=config,
        manifest=manifest,
        task=task,
        embeddings=embeddings,
        inputs=inputs,
        method=method,
        optimizer=build_optimizer(method, config.optimizer),
        average=_average(config, method),
        phases=phases,
        loaders=tuple(_loader(config, manifest, task, inputs, device, method, s.phase, ranks) for s in phases),
        learnable=frozenset(name for name, p in method.named_parameters() if p.requires_grad),
        layout=layout_of(method),
        frozen=frozen,
        device=device,
        identity=identity(config, manifest),
        former_identities=former_identities(config, manifest),
        precision=precision,
        ranks=ranks,
        sharing=None if ranks.alone else BackboneSharing(ranks, method, sync_batchnorm=config.run.sync_batchnorm),
    )


def _average(config: RunConfig, method: Method) -> WeightAverage | WeightWindow:
    copied = statistics_of(method)
    if config.averaging.name != "swad":
        return WeightAverage(config.averaging, copied)
    return WeightWindow(config.averaging, copied)


def _loader(
    config: RunConfig,
    manifest: Manifest,
    task: Task,
    inputs: NetworkInputs,
    device: torch.device,
    method: Method,
    phase: Phase,
    ranks: Ranks,
) -> Loader:
    rows = [manifest.rows("train", source) for source in task.sources]
    batch, seed, times = config.data.batch_size, config.run.seed, method.batches_per_step
    sampler: Sampler = DomainBalanced(rows, batch, seed, task.sources, times)
    if phase.sampler == "classes":
        pool = np.concatenate(rows)
        sampler = ClassBalanced(pool, manifest.labels[pool], len(rows) * times * batch, seed)
    return Loader(inputs, manifest, task, sampler, seed, device, ranks)


def network_inputs(
    config: RunConfig, manifest: Manifest, task: Task, device: torch.device, progress: Progress = SILENT
) -> tuple[NetworkInputs, FrozenRecord | None]:
    """What the part that learns is given, and the frozen network that computed it, where there is one."""
    if config.data.features:
        file = Path(config.data.features)
        vectors = FeatureVectors.read(file, manifest)
        rows = np.concatenate([manifest.rows("train", source) for source in task.sources])
        return FeatureInputs(vectors, manifest, training_scale(vectors, rows)), extractor_of(vectors, file)
    if config.backbone.frozen:
        return activation_inputs(config.data, config.backbone, manifest, device, progress)
    cache = ImageCache.open(manifest, config.data.decoded_side, progress=progress)
    train = TrainTransform(size=config.data.size, **config.data.augmentation.model_dump())
    return ImageInputs(cache, train, EvalTransform(size=config.data.size)), None
