"""What a step of ltds costs.

    python benchmarks/step.py                                     # 64 px, C = 50, 1000, 10000, first order
    python benchmarks/step.py --size 224 --batch 16 --classes 50
    python benchmarks/step.py --order second --classes 50,1000
    python benchmarks/step.py --part method --classes 50,200,1000,2000,5000,10000

`--part step`: time as a multiple of the floor, the bare backbone passes that the algorithm needs (forward and backward
of ResNet-10 on three meta-train batches and the meta-test batch, each domain in its own pass, plain cross-entropy).
`--part method`: the method's own part (losses, statistics, projections, inner step; features come as they are), as a
multiple of one 2048^3 float32 matrix product.

Step and unit alternate in one process; medians, and quartiles of the ratio. Times are taken with retained malloc
arenas, peak memory (above what was resident before the first step) in a process of its own with the default ones.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ltds.core.files import write_json
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.engine.environment import describe_environment
from ltds.methods.meta_ltds import MetaLtds
from ltds.methods.meta_ltds_config import MetaLtdsConfig
from ltds.methods.problem import Problem
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.semantics.embeddings import ClassEmbeddings

DOMAINS, FEATURES, SEMANTIC_WIDTH = 4, 512, 300
CLOCKS = {"before T_Sigma": Clock(0, 0, 100, 1), "augmentation on": Clock(0, 90, 100, 1)}
RETAINED = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "34359738368",
    "MALLOC_TOP_PAD_": "268435456",
}


class Shift(nn.Module):
    """Features as they are, but in a graph, so that the way back into f is paid for."""

    def __init__(self) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.zeros(()))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.by


def make(case: dict[str, Any]) -> tuple[MetaLtds, Batch]:
    """Four source domains; every class in some of them; ResNet-10, or features as they are."""
    rng, classes, batch = np.random.default_rng(0), case["classes"], case["batch"]
    counts = rng.integers(1, 50, (DOMAINS, classes)) * (rng.random((DOMAINS, classes)) < 0.6)
    counts[rng.integers(0, DOMAINS, classes), np.arange(classes)] = 5
    names = tuple(f"c{i}" for i in range(classes))
    task = Task("bench", names, ("a", "b", "c", "d", "e"), "e", counts.astype(np.int64))
    torch.manual_seed(0)
    whole = case["part"] == "step"
    problem = Problem(
        task=task,
        embeddings=ClassEmbeddings(names, torch.randn(classes, SEMANTIC_WIDTH)),
        backbone=build_backbone(BackboneSettings()) if whole else Shift(),
        feature_dim=FEATURES,
    )
    method = MetaLtds(MetaLtdsConfig(gradient_order=case["order"]), problem)
    if method.channels_last:  # the floor has the same network, so the same layout
        method.to(memory_format=torch.channels_last)
    method.prototypes.present.copy_(torch.tensor(counts > 0))  # as after some epochs
    method.prototypes.value.uniform_()
    domains = torch.arange(DOMAINS).repeat_interleave(batch)
    labels = torch.cat([torch.tensor(rng.choice(np.flatnonzero(counts[d]), batch)) for d in range(DOMAINS)])
    shape = (3, case["size"], case["size"]) if whole else (FEATURES,)
    images = torch.randn(DOMAINS * batch, *shape).relu_()
    return method.train(), Batch(images, labels, domains, torch.arange(len(labels)))


def unit(method: MetaLtds, batch: Batch, part: str) -> Callable[[], object]:
    """The work that the step is measured in."""
    if part == "method":
        a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
        return lambda: a @ b

    def floor() -> None:
        for domain in range(DOMAINS):
            own = batch.of(domain)
            F.cross_entropy(method.classifier(method.backbone(own.images)), own.labels).backward()

    return floor


def seconds(method: MetaLtds, work: Callable[[], object]) -> float:
    method.zero_grad(set_to_none=True)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_time(case: dict[str, Any]) -> dict[str, Any]:
    method, batch = make(case)
    clock = CLOCKS[case["case"]]
    reference = unit(method, batch, case["part"])
    pairs = []
    for _ in range(case["repeats"] + 1):
        step = seconds(method, lambda: method.loss(batch, clock).total.backward())
        pairs.append((step, seconds(method, reference)))
    steps, units = zip(*pairs[1:], strict=True)  # the first turn warms caches and allocators up
    low, _, high = statistics.quantiles([s / u for s, u in zip(steps, units, strict=True)], n=4)
    return {
        "step_seconds": round(statistics.median(steps), 4),
        "unit_seconds": round(statistics.median(units), 4),
        "ratio": round(statistics.median(steps) / statistics.median(units), 3),
        "ratio_quartiles": [round(low, 3), round(high, 3)],
    }


def measure_memory(case: dict[str, Any]) -> dict[str, Any]:
    method, batch = make(case)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 2**20
    for _ in range(3):
        seconds(method, lambda: method.loss(batch, CLOCKS[case["case"]]).total.backward())
    return {"peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)}


def in_own_process(kind: str, case: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, __file__, f"--measure={kind}", "--case", json.dumps(case)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["step", "method"], default="step")
    parser.add_argument("--classes", default="50,1000,10000")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--order", choices=["first", "second"], default="first")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--record", type=Path, help="JSON file to add the rows to")
    parser.add_argument("--measure", choices=["time", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.measure:
        print(json.dumps((measure_time if words.measure == "time" else measure_memory)(words.case)))
        return
    rows, commit = [], describe_environment(torch.device("cpu"))["commit"]
    for classes in map(int, words.classes.split(",")):
        for name in CLOCKS:
            case = {"part": words.part, "classes": classes, "case": name, "size": words.size, "batch": words.batch}
            case |= {"order": words.order, "repeats": words.repeats}
            found = in_own_process("time", case, RETAINED) | in_own_process("memory", case, {})
            rows.append(case | found | {"commit": commit})
            print(rows[-1], flush=True)
    if words.record:
        old = json.loads(words.record.read_text())["rows"] if words.record.is_file() else []
        machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, float32"
        command = "python benchmarks/step.py, with the options that each row names"
        write_json(words.record, {"command": command, "machine": machine, "rows": [*old, *rows]})


if __name__ == "__main__":
    main()
