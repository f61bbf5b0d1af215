"""What a step of ltds costs, as a multiple of the bare backbone passes that the algorithm needs.

    python benchmarks/step.py [--size 64] [--classes 50,1000] [--repeats 9] [--record results/step.json]

Floor: forward and backward of the three meta-train batches and the meta-test batch, each domain in its own pass, with
plain cross-entropy. Step: `MetaLtds.loss` and the backward pass on it. Both in one process, interleaved; medians and
quartiles of the ratio. Peak memory is measured in a fresh process for each case.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ltds.core.files import write_json
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.methods.meta_ltds import MetaLtds, MetaLtdsConfig
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.semantics.embeddings import ClassEmbeddings

DOMAINS, SEMANTIC_WIDTH = 4, 300
BEFORE, LATE = Clock(0, 0, 100, 1), Clock(0, 90, 100, 1)  # without and with augmentation


def make(classes: int, size: int, batch: int, order: str) -> tuple[MetaLtds, Batch]:
    """ResNet-10, four source domains; every class in some of them."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, (DOMAINS, classes)) * (rng.random((DOMAINS, classes)) < 0.6)
    counts[rng.integers(0, DOMAINS, classes), np.arange(classes)] = 5
    names = tuple(f"c{i}" for i in range(classes))
    task = Task("bench", names, ("a", "b", "c", "d", "e"), "e", counts.astype(np.int64))
    torch.manual_seed(0)
    embeddings = ClassEmbeddings(names, torch.randn(classes, SEMANTIC_WIDTH))
    backbone = build_backbone(BackboneSettings())
    method = MetaLtds(MetaLtdsConfig(order=order), task=task, embeddings=embeddings, backbone=backbone, features=512)
    domains = torch.arange(DOMAINS).repeat_interleave(batch)
    labels = torch.cat([torch.tensor(rng.choice(np.flatnonzero(counts[d]), batch)) for d in range(DOMAINS)])
    images = torch.randn(DOMAINS * batch, 3, size, size)
    return method.train(), Batch(images, labels, domains, torch.arange(len(labels)))


def floor(method: MetaLtds, batch: Batch) -> None:
    for domain in range(DOMAINS):
        own = batch.of(domain)
        F.cross_entropy(method.classifier(method.backbone(own.images)), own.labels).backward()


def step(method: MetaLtds, batch: Batch, clock: Clock) -> None:
    method.loss(batch, clock).total.backward()


def timed(work: Any, *arguments: Any) -> float:
    arguments[0].zero_grad(set_to_none=True)
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def peak_mb(arguments: list[str]) -> float:
    """Peak memory of a few steps above that of the same process before them, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--peak", *arguments], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_peak(classes: int, size: int, batch: int, order: str, augmented: bool) -> float:
    method, data = make(classes, size, batch, order)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        step(method, data, LATE if augmented else BEFORE)
        method.zero_grad(set_to_none=True)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024


def case(classes: int, size: int, batch: int, order: str, repeats: int) -> list[dict[str, Any]]:
    method, data = make(classes, size, batch, order)
    clocks = {"before T_Sigma": BEFORE, "augmentation on": LATE}
    times: dict[str, list[float]] = {name: [] for name in ("floor", *clocks)}
    for turn in range(repeats + 1):
        measured = {"floor": timed(floor, method, data)}
        measured |= {name: timed(step, method, data, clock) for name, clock in clocks.items()}
        if turn:  # the first turn warms caches and allocators up
            for name, seconds in measured.items():
                times[name].append(seconds)
    rows = []
    for name in clocks:
        ratios = [s / f for s, f in zip(times[name], times["floor"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        flags = [str(classes), str(size), str(batch), order, str(int(name == "augmentation on"))]
        rows.append(
            {
                "classes": classes,
                "pixels": size,
                "batch": batch,
                "order": order,
                "case": name,
                "floor_seconds": round(statistics.median(times["floor"]), 4),
                "ratio": round(statistics.median(times[name]) / statistics.median(times["floor"]), 3),
                "ratio_quartiles": [round(low, 3), round(high, 3)],
                "peak_mb": round(peak_mb(flags)),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--classes", default="50,1000,10000")
    parser.add_argument("--order", default="first", choices=["first", "second"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--record", type=Path, help="JSON file to append the rows to")
    parser.add_argument("--peak", nargs=5, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.peak:
        classes, size, batch, order, augmented = words.peak
        print(measure_peak(int(classes), int(size), int(batch), order, augmented == "1"))
        return
    rows = []
    for classes in map(int, words.classes.split(",")):
        rows += case(classes, words.size, words.batch, words.order, words.repeats)
    if words.record:
        old = json.loads(words.record.read_text())["rows"] if words.record.is_file() else []
        machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
        write_json(words.record, {"command": "python benchmarks/step.py", "machine": machine, "rows": old + rows})


if __name__ == "__main__":
    main()
