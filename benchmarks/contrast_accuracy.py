"""Does ltds lose accuracy when L_S2S and L_S2Z contrast a sample of the classes?

    python benchmarks/contrast_accuracy.py --record results/growth.json
    python benchmarks/contrast_accuracy.py --classes 2000 --methods agg,without,all,M=1000,M=500

A task of feature vectors: 600 classes in groups of ten, a long tail (30 images down to 1 in each source domain, 40 %
of the pairs of domain and class missing), three source domains and an unseen one, each a linear map and a shift of its
own. Class embeddings tell the group and three quarters of what distinguishes a class in it. Accuracy on five vectors of
every class in the unseen domain: 3,000, so 0.9 points of standard error for one run at 50 %. With C classes training
has C / 2 steps. The seed decides task and
training, so runs of a seed can be compared in pairs. `without` has neither loss: what the two are worth here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ltds.core.files import write_json
from ltds.core.rng import numpy_generator
from ltds.core.runs import RunDirectory
from ltds.data.features import write_features
from ltds.data.manifest import Manifest
from ltds.data.splits import SPLITS
from ltds.engine.config import resolve
from ltds.engine.start import train_new_run
from ltds.evaluation.table import PredictionTable
from ltds.semantics.archive import write_embeddings
from ltds.semantics.embeddings import ClassEmbeddings

GROUP, WIDTH, SEMANTIC, DOMAINS = 10, 64, 48, 4
LTDS: dict[str, Any] = {"name": "ltds", "inner_lr": 0.01, "weights": {"augmentation": 0.0}}
METHODS: dict[str, dict[str, Any]] = {
    "agg": {"name": "agg"},
    "without": LTDS | {"weights": {"augmentation": 0.0, "s2s": 0.0, "s2z": 0.0}},
    "all": LTDS | {"contrast_classes": 10**6},
}


def method_of(name: str) -> dict[str, Any]:
    """The settings of a row: one of METHODS, or `M=...`."""
    return METHODS[name] if name in METHODS else LTDS | {"contrast_classes": int(name.removeprefix("M="))}


def write_task(root: Path, classes: int, seed: int) -> Manifest:
    rng = numpy_generator(seed, "benchmarks/contrast_accuracy")
    groups = rng.normal(size=(classes // GROUP, SEMANTIC)).repeat(GROUP, 0)
    told = groups + 0.6 * rng.normal(size=(classes, SEMANTIC))
    centres = np.tanh(told @ rng.normal(size=(SEMANTIC, WIDTH)) / SEMANTIC**0.5 * 1.5)
    centres += 0.2 * rng.normal(size=(classes, WIDTH))  # what no embedding tells
    head = rng.permutation(classes)
    rows: list[tuple[int, int, int]] = []
    for domain in range(DOMAINS):
        for place, label in enumerate(head):
            train = round(30 ** (1 - place / (classes - 1))) if rng.random() < 0.6 else 0
            if domain < DOMAINS - 1:
                rows += [(label, domain, SPLITS.index("train"))] * train
                rows += [(label, domain, SPLITS.index("val"))] * (train > 5)
            else:
                rows += [(label, domain, SPLITS.index("test"))] * 5
    labels, domains, splits = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    values = np.empty((len(rows), WIDTH), dtype=np.float32)
    for domain in range(DOMAINS):
        turn = np.eye(WIDTH) + 0.6 * rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5
        own = domains == domain
        noisy = centres[labels[own]] + 0.5 * rng.normal(size=(own.sum(), WIDTH))
        values[own] = noisy @ turn + 0.3 * rng.normal(size=WIDTH)
    paths = tuple(str(i) for i in range(len(rows)))
    names = tuple(f"class {c}" for c in range(classes))
    places = ("one", "two", "three", "unseen")
    (root / "semantics").mkdir(parents=True)
    manifest = Manifest(root, "synthetic", names, places, paths, labels, domains, splits)
    manifest.write()
    write_features(root / "features.npz", values, paths)
    write_embeddings(root / "semantics" / "told.npz", ClassEmbeddings(names, torch.from_numpy(told)))
    return manifest


def accuracy(manifest: Manifest, method: dict[str, Any], seed: int, folder: Path) -> dict[str, float]:
    """Percent of the vectors of the unseen domain, and seconds of processor time."""
    config = resolve(
        {
            "data": {"root": str(manifest.root), "held_out": "unseen", "batch_size": 32},
            "schedule": {"epochs": 4, "steps_per_epoch": len(manifest.classes) // 8, "keep": "last"},
            "optimizer": {"lr": 0.03},
            "run": {"threads": 1, "device": "cpu", "seed": seed},
            "method": method,
        },
        {"data": {"features": str(manifest.root / "features.npz")}},
    )
    start = time.process_time()
    run = RunDirectory(folder)
    train_new_run(run, config, manifest)
    table = PredictionTable.load(run.predictions_file("test"))
    right = (table.logits.argmax(1) == table.labels).mean()
    return {"accuracy": round(100 * float(right), 2), "cpu_seconds": round(time.process_time() - start, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classes", type=int, default=600)
    parser.add_argument("--methods", default=",".join([*METHODS, "M=300", "M=100"]))
    parser.add_argument("--record", type=Path, help="JSON file in which to replace this table")
    words = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in words.methods.split(",")}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(words.seeds):
            manifest = write_task(Path(folder) / f"task {seed}", words.classes, seed)
            for name, runs in found.items():
                runs.append(accuracy(manifest, method_of(name), seed, Path(folder) / f"{name} {seed}"))
                print(seed, name, runs[-1], flush=True)
    rows = []
    for name, runs in found.items():
        values = [run["accuracy"] for run in runs]
        beside = [v - run["accuracy"] for v, run in zip(values, found.get("all", runs), strict=True)]
        row = {"contrast": name, "accuracy": values, "mean": round(statistics.mean(values), 2)}
        rows.append(row | {"less_all": round(statistics.mean(beside), 2), "runs": runs})
        print(rows[-1])
    if words.record:
        old = json.loads(words.record.read_text()) if words.record.is_file() else {}
        name = "accuracy" if words.classes == 600 else f"accuracy_{words.classes}_classes"
        write_json(words.record, old | {name: rows})


if __name__ == "__main__":
    main()
