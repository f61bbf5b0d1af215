"""What the Loader adds to a step of ltds: steps with the loader inside against the same steps on tensors in memory.

    python benchmarks/loader.py                       # 4 domains x 48 images of 64 px, from a cache of 227 px
    python benchmarks/loader.py --size 224 --batch 16 --cache-size 256

A step is loss, backward pass and optimizer (ResNet-10, 50 classes, augmentation on); JPEGs of 227 pixels are made and
cached first. Stretches of steps alternate in one process, each with a new loader, whose first batch is waited for;
medians (the first turn warms up), and quartiles of the ratio. Malloc's arenas are retained, as in benchmarks/step.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from input_pipeline import generated
from ltds.core.files import write_json
from ltds.core.types import Batch
from ltds.data.cache import ImageCache
from ltds.data.inputs import ImageInputs
from ltds.data.loading import Loader
from ltds.data.manifest import Manifest
from ltds.data.sampling import DomainBalanced
from ltds.data.transforms import EvalTransform, TrainTransform
from ltds.engine.environment import describe_environment
from ltds.engine.optim import build_optimizer
from ltds.engine.settings import OptimizerSettings
from ltds.methods.meta_ltds import MetaLtds
from step import CLOCKS, DOMAINS, RETAINED, make

CLASSES = 50


def manifest_for(method: MetaLtds, files: list[Path], root: Path) -> Manifest:
    """The files dealt out to the method's source domains, and in each to the classes that it trains on there."""
    task, domains = method.task, np.arange(len(files)) % DOMAINS
    trained = [np.flatnonzero(task.counts[d]) for d in range(DOMAINS)]
    labels = np.array([trained[i % DOMAINS][i // DOMAINS % len(trained[i % DOMAINS])] for i in range(len(files))])
    names = tuple(str(file.resolve()) for file in files)
    return Manifest(root, "benchmark", task.classes, task.domains, names, labels, domains, np.zeros_like(labels))


def loader_for(method: MetaLtds, files: list[Path], root: Path, words: argparse.Namespace) -> Loader:
    manifest = manifest_for(method, files, root)
    cache = ImageCache.open(manifest, words.cache_size)
    rows = [np.flatnonzero(manifest.domain_ids == d) for d in range(DOMAINS)]
    sampler = DomainBalanced(rows, words.batch, 0, method.task.sources)
    inputs = ImageInputs(cache, TrainTransform(words.size), EvalTransform(words.size))
    return Loader(inputs, manifest, method.task, sampler, 0)


def compare(words: argparse.Namespace, root: Path) -> list[dict[str, object]]:
    case = {"part": "step", "classes": CLASSES, "batch": words.batch, "size": words.size, "order": "first"}
    method, _ = make(case)
    loader = loader_for(method, generated(root, words.images), root, words)
    optimizer = build_optimizer(method, OptimizerSettings(lr=1e-4))

    def seconds(batches: Iterable[Batch]) -> float:
        start = time.perf_counter()
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            method.loss(batch, CLOCKS["augmentation on"]).total.backward()
            optimizer.step()
        return (time.perf_counter() - start) / words.steps

    found: dict[str, list[float]] = {"in memory": [], "loader as in training": [], "loader, two threads ahead": []}
    for turn in range(words.repeats + 1):
        steps = turn * words.steps, (turn + 1) * words.steps
        kept = list(loader.batches(*steps))
        made = kept, loader.batches(*steps), loader.batches(*steps, threads=2)
        for times, batches in zip(found.values(), made, strict=True):
            times.append(seconds(batches))
    return [summary(name, times[1:], found["in memory"][1:]) for name, times in found.items()]


def summary(name: str, times: list[float], base: list[float]) -> dict[str, object]:
    low, _, high = statistics.quantiles([a / b for a, b in zip(times, base, strict=True)], n=4)
    middle, unit = statistics.median(times), statistics.median(base)
    return {
        "batches": name,
        "step_seconds": round(middle, 4),
        "ratio": round(middle / unit, 3),
        "ratio_quartiles": [round(low, 3), round(high, 3)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="pixels out")
    parser.add_argument("--batch", type=int, default=48, help="images of each of the four domains")
    parser.add_argument("--cache-size", type=int, default=227, help="shorter side in the cache")
    parser.add_argument("--images", type=int, default=1600)
    parser.add_argument("--steps", type=int, default=8, help="steps of one stretch")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--record", type=Path, help="JSON file to write")
    words = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in RETAINED.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | RETAINED)
    with tempfile.TemporaryDirectory() as root:
        rows = compare(words, Path(root))
    for row in rows:
        print(row)
    if words.record:
        commit = describe_environment(torch.device("cpu"))["commit"]
        asked = {name: getattr(words, name) for name in ("size", "batch", "cache_size", "steps", "repeats")}
        write_json(words.record, {"command": "python benchmarks/loader.py", "commit": commit, **asked, "rows": rows})


if __name__ == "__main__":
    main()
