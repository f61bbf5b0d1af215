"""From arrays to a trained model, through the same engine as everything else: a small dataset and a run on disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltds.core.config import merge, nested
from ltds.core.errors import DataError, expected
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.build.groups import draw_grouped_splits
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.data.splits import TEST, TRAIN, VAL
from ltds.engine.config import RunConfig, resolve
from ltds.engine.load import load_model
from ltds.engine.model import Model
from ltds.engine.start import train_new_run
from ltds.methods.registry import find_method
from ltds.planning.choose import averaging_settings, choose_method_settings, leaves_milestones_open
from ltds.semantics.archive import write_embeddings
from ltds.semantics.embeddings import ClassEmbeddings

EPOCHS = 10  # validations in a fit, at most
STEPS = 20  # of an epoch, at least
SMALLEST_PAIR = 4  # samples of a class in a domain of which some may be validation samples


@dataclass(frozen=True)
class LabelledVectors:
    """Feature vectors (N,D) with the number of the class, of the domain and perhaps of the group of each.

    embeddings (C,S): of the classes.
    """

    values: NDArray[np.floating]
    labels: NDArray[np.int64]
    domains: NDArray[np.int64]
    embeddings: NDArray[np.floating] | None = None
    groups: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class FitSettings:
    """How to train: what the estimator's parameters say."""

    method: str
    steps: int
    batch_size: int
    validation_fraction: float
    seed: int
    device: str
    settings: Mapping[str, Any]


def train_on(samples: LabelledVectors, how: FitSettings) -> tuple[Model, int]:
    """A trained model, and the steps that it took.

    The files on the way are deleted, and torch's own random numbers are left as they were, on the CPU and CUDA devices.
    """
    devices = range(torch.cuda.device_count())
    with tempfile.TemporaryDirectory(prefix="ltds-fit-") as name, torch.random.fork_rng(devices):
        folder = Path(name)
        manifest = _write_dataset(folder / "data", samples, how)
        run = RunDirectory(folder / "run")
        train_new_run(run, _config(folder / "data", manifest, samples, how), manifest)
        model = load_model(run.path, device=how.device)
        steps, _, _ = run.last_line(time.time())
    model.folder = None
    return model, steps


def _config(data: Path, manifest: Manifest, samples: LabelledVectors, how: FitSettings) -> RunConfig:
    """The settings of the run, with the embeddings if the method uses them: a search compares it with others."""
    settings = _settings(data, manifest, how)
    config = resolve(settings)
    if not config.method_entry.method.uses_embeddings(config.method) or config.semantics.table:
        return config
    if samples.embeddings is None:
        rule = f"an array with a row for each class, because the method '{config.method_name}' uses it"
        raise DataError(expected("class_embeddings", rule, "None", "Give one, or choose another method ('bsce')."))
    return resolve(merge(settings, {"semantics": {"table": str(data / "embeddings.npz")}}))


def _settings(data: Path, manifest: Manifest, how: FitSettings) -> dict[str, Any]:
    smallest = int(manifest.counts("train").sum(axis=1).min())
    batch = min(how.batch_size, smallest // find_method(how.method).method.batches_per_step)
    if batch < 2:
        remedy = "Add samples, or leave that domain out."
        raise DataError(expected("each domain", "one with several training samples", smallest, remedy))
    given = merge({"optimizer": {}, "schedule": {}}, nested(how.settings))  # refuses a value in place of a group
    epochs = min(EPOCHS, max(1, how.steps // STEPS))
    chosen: dict[str, Any] = {
        "data": {"root": str(data), "features": str(data / "features.npz"), "batch_size": batch},
        "method": {"name": how.method},
        "schedule": {"epochs": epochs, "steps_per_epoch": -(-how.steps // epochs)},
        "run": {"seed": how.seed, "device": how.device},
    }
    if given["optimizer"].get("name", "sgd") == "sgd":
        chosen["optimizer"] = {"lr": 0.03}
    if leaves_milestones_open(given):
        chosen["schedule"]["milestones"] = [0.8]
    chosen |= nested(averaging_settings(given, how.steps) or {})
    suited = choose_method_settings(how.method, merge(chosen, given), "features")
    return merge(chosen, nested(suited), given)


def _write_dataset(folder: Path, samples: LabelledVectors, how: FitSettings) -> Manifest:
    """A dataset without images. Validation samples are also its test samples: a run wants some."""
    folder.mkdir()
    n = len(samples.values)
    splits = _splits(samples, how)
    tested = np.flatnonzero(splits == VAL)
    tested = tested if len(tested) else np.arange(n)
    rows = np.concatenate([np.arange(n), tested])
    names = tuple(str(i) for i in range(n))
    manifest = Manifest(
        root=folder,
        name="samples",
        classes=tuple(f"class {c}" for c in range(int(samples.labels.max()) + 1)),
        domains=tuple(f"domain {d}" for d in range(int(samples.domains.max()) + 1)),
        paths=tuple(names[row] for row in rows),
        labels=samples.labels[rows],
        domain_ids=samples.domains[rows],
        split_ids=np.concatenate([splits, np.full(len(tested), TEST)]),
        test_repeats=True,
    )
    manifest.write()
    write_features(folder / "features.npz", samples.values, names)
    if samples.embeddings is not None:
        vectors = torch.from_numpy(np.asarray(samples.embeddings, np.float64))
        write_embeddings(folder / "embeddings.npz", ClassEmbeddings(manifest.classes, vectors))
    return manifest


def _splits(samples: LabelledVectors, how: FitSettings) -> NDArray[np.int64]:
    """(N,) for each sample TRAIN or VAL: the same share of each class in each domain, none of a rare one, never all."""
    pairs = samples.labels * (int(samples.domains.max()) + 1) + samples.domains
    if samples.groups is not None and how.validation_fraction:
        names = (list(map(str, column.tolist())) for column in (samples.labels, samples.domains, samples.groups))
        splits = draw_grouped_splits(*names, val=how.validation_fraction, test=0.0, seed=how.seed)
        _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        rare = counts[pair] < SMALLEST_PAIR
        splits[np.isin(samples.groups, samples.groups[rare])] = TRAIN
        return splits
    splits = np.full(len(samples.values), TRAIN, dtype=np.int64)
    for pair in np.unique(pairs):
        rows = np.flatnonzero(pairs == pair)
        if len(rows) >= SMALLEST_PAIR:
            order = numpy_generator(how.seed, "sklearn/validation", int(pair)).permutation(rows)
            splits[order[: min(round(how.validation_fraction * len(rows)), len(rows) - 1)]] = VAL
    return splits
