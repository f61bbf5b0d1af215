"""What a step of ltds costs.

    python benchmarks/step.py                                     # 64 px, C = 50, 1000, 10000, first order
    python benchmarks/step.py --size 224 --batch 16 --classes 50
    python benchmarks/step.py --order second --classes 50,1000
    python benchmarks/step.py --part method --classes 50,200,1000,2000,5000,10000
    python benchmarks/step.py --classes 10000 --contrast 1000     # method.contrast_classes

`--part step`: time as a multiple of the floor, the bare backbone passes that the algorithm needs (forward and backward
of ResNet-10 on three meta-train batches and the meta-test batch, each domain in its own pass, plain cross-entropy).
One floor for all rows: the network in the faster of the two memory layouts, whatever layout the method uses.
`--part method`: the method's own part (losses, statistics, projections, inner step; features come as they are), as a
multiple of one 2048^3 float32 matrix product.

Step and unit alternate in one process; medians, and quartiles of the ratio; processor time beside wall time, because
others may use the machine. `benchmarks/growth.py` varies more than the number of classes. Times are taken with retained
malloc arenas, peak memory (above what was resident before the first step) in a process of its own with default ones.
"""

from __future__ import annotations

import argparse
import copy
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

DEFAULTS = {"part": "step", "size": 64, "batch": 48, "order": "first", "contrast": 0, "threads": 0}
DEFAULTS |= {
    "domains": 4,
    "features": 512,
    "semantic_width": 300,
    "case": "augmentation on",
    "memory_steps": 3,
    "layout": "",
}
CLOCKS = {"before T_Sigma": Clock(0, 0, 100, 1), "augmentation on": Clock(0, 90, 100, 1)}
LAYOUTS = ("channels_last", "contiguous_format")
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
    """Some source domains; every class in some of them; ResNet-10, or features as they are."""
    case = DEFAULTS | case
    if case["threads"]:
        torch.set_num_threads(case["threads"])
    rng, classes, batch, domains = np.random.default_rng(0), case["classes"], case["batch"], case["domains"]
    counts = rng.integers(1, 50, (domains, classes)) * (rng.random((domains, classes)) < 0.6)
    counts[rng.integers(0, domains, classes), np.arange(classes)] = 5
    names, places = (tuple(f"{letter}{i}" for i in range(n)) for letter, n in (("c", classes), ("d", domains + 1)))
    task = Task("bench", names, places, places[-1], counts.astype(np.int64))
    torch.manual_seed(0)
    whole = case["part"] == "step"
    problem = Problem(
        task=task,
        embeddings=ClassEmbeddings(names, torch.randn(classes, case["semantic_width"])),
        backbone=build_backbone(BackboneSettings()) if whole else Shift(),
        feature_dim=case["features"],
    )
    settings = MetaLtdsConfig(gradient_order=case["order"], contrast_classes=case["contrast"] or case["classes"])
    method = MetaLtds(settings, problem)
    if not method.second_order:  # as in a run
        method.to(memory_format=torch.channels_last)
    method.prototypes.present.copy_(torch.tensor(counts > 0))  # as after some epochs
    method.prototypes.value.uniform_()
    origins = torch.arange(domains).repeat_interleave(batch)
    labels = torch.cat([torch.tensor(rng.choice(np.flatnonzero(counts[d]), batch)) for d in range(domains)])
    shape = (3, case["size"], case["size"]) if whole else (case["features"],)
    images = torch.randn(domains * batch, *shape).relu_()
    return method.train(), Batch(images, labels, origins, torch.arange(len(labels)))


def unit(method: MetaLtds, batch: Batch, part: str, layout: str = "") -> Callable[[], object]:
    """The work that the step is measured in; of the floor's layouts the faster one, unless it is named."""
    if part == "method":
        a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
        return lambda: a @ b

    def floor(layout: torch.memory_format) -> Callable[[], object]:
        network = nn.Sequential(copy.deepcopy(method.backbone), copy.deepcopy(method.classifier))
        network.to(memory_format=layout)

        def passes() -> None:
            network.zero_grad(set_to_none=True)
            for domain in range(int(batch.domains.max()) + 1):
                own = batch.of(domain)
                F.cross_entropy(network(own.images), own.labels).backward()

        return passes

    if layout:
        return floor(getattr(torch, layout))
    floors = {name: floor(getattr(torch, name)) for name in LAYOUTS}
    best = {name: min(seconds(method, work)[1] for _ in range(3)) for name, work in floors.items()}
    return floors[min(best, key=best.__getitem__)]


def seconds(method: MetaLtds, work: Callable[[], object]) -> tuple[float, float]:
    """Wall time and processor time."""
    method.zero_grad(set_to_none=True)
    start, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - busy


def measure_time(case: dict[str, Any]) -> dict[str, Any]:
    case = DEFAULTS | case
    method, batch = make(case)
    clock = CLOCKS[case["case"]]
    reference = unit(method, batch, case["part"], case["layout"])
    pairs = []
    for _ in range(case["repeats"] + 1):
        step = seconds(method, lambda: method.loss(batch, clock).total.backward())
        pairs.append((step, seconds(method, reference)))
    kept = pairs[1:] if case["repeats"] > 1 else pairs[-1:] * 2  # the first turn warms caches and allocators up
    found: dict[str, Any] = {}
    for prefix, i in (("", 0), ("cpu_", 1)):
        steps, units = ([turn[which][i] for turn in kept] for which in (0, 1))
        low, _, high = statistics.quantiles([s / u for s, u in zip(steps, units, strict=True)], n=4)
        found |= {
            f"{prefix}step_seconds": round(statistics.median(steps), 4),
            f"{prefix}unit_seconds": round(statistics.median(units), 4),
            f"{prefix}ratio": round(statistics.median(steps) / statistics.median(units), 3),
            f"{prefix}ratio_quartiles": [round(low, 3), round(high, 3)],
        }
    return found


def measure_memory(case: dict[str, Any]) -> dict[str, Any]:
    case = DEFAULTS | case
    method, batch = make(case)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 2**20
    for _ in range(case["memory_steps"]):
        seconds(method, lambda: method.loss(batch, CLOCKS[case["case"]]).total.backward())
    return {"peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)}


def in_own_process(kind: str, case: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    command = [sys.executable, __file__, f"--measure={kind}", "--case", json.dumps(case)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, float32"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["step", "method"], default="step")
    parser.add_argument("--classes", default="50,1000,10000")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--order", choices=["first", "second"], default="first")
    parser.add_argument("--contrast", type=int, default=0, help="method.contrast_classes")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch takes")
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
            case |= {name: getattr(words, name) for name in ("contrast", "threads") if getattr(words, name)}
            found = in_own_process("time", case, RETAINED) | in_own_process("memory", case, {})
            rows.append(case | found | {"commit": commit})
            print(rows[-1], flush=True)
    if words.record:
        old = json.loads(words.record.read_text())["rows"] if words.record.is_file() else []
        command = "python benchmarks/step.py, with the options that each row names"
        write_json(words.record, {"command": command, "machine": machine(), "rows": [*old, *rows]})


if __name__ == "__main__":
    main()
