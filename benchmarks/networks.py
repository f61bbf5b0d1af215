"""What methods cost, and the domain networks of epi-fcr and daml: one after the other, or all in one batched call.

    python benchmarks/networks.py [--repeats 9] [--record results/networks.json]

Part 1, forward and backward of four ResNet-10 in training mode, BatchNorm's running statistics included: a Python loop
over the networks against `torch.vmap` over their stacked weights (`torch.func.stack_module_state`), each network on its
own domain (epi-fcr) and every network on every domain (daml).
Part 2, a step in the middle of each phase of each method, on as many images (daml reads twice as many), and from that
the training time of a run in runs of agg, with the number of parameters.
One thread; the ways alternate in one process; medians.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from ltds.core.files import write_json
from ltds.core.task import Task
from ltds.core.types import Batch, Clock
from ltds.engine.environment import describe_environment
from ltds.engine.phases import freeze
from ltds.methods.base import Method, Phase
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS
from ltds.nn.backbones import BackboneSettings, build_backbone
from ltds.semantics.embeddings import ClassEmbeddings

DOMAINS, CLASSES = 4, 50
SIZES = {
    "bestiary (32 px, width 24, batch 32)": (32, 32, BackboneSettings(stem="medium", width=24)),
    "64 px, width 64, batch 16": (64, 16, BackboneSettings()),
}
MEASURED = [
  "agg", "bsce", "dc", "la", "la-posthoc", "equal", "crt", "lws", "tau-norm", "ncm", "remix", "cumix", "mixstyle",
  "mixstyle-bsce", "agg-embeddings", "isda", "mldg", "masf", "epi-fcr", "epi-fcr-bsce", "daml", "daml-warmup", "ltds",
]  # fmt: skip


def medians(ways: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Seconds of each way, taken in turns; the first turn warms up."""
    turns: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats + 1):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            turns[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in turns.items()}


def loop_or_batched(size: int, batch: int, settings: BackboneSettings, repeats: int) -> dict[str, Any]:
    nets = [build_backbone(settings).to(memory_format=torch.channels_last).train() for _ in range(DOMAINS)]
    skeleton = copy.deepcopy(nets[0]).to("meta")
    weights, buffers = stack_module_state(nets)
    images = torch.randn(DOMAINS, batch, 3, size, size)

    def call(own: dict[str, Tensor], running: dict[str, Tensor], x: Tensor) -> Tensor:
        features: Tensor = functional_call(skeleton, (own, running), (x,))
        return features.square().mean()

    def backward(losses: list[Tensor]) -> None:
        for tensor in (*weights.values(), *(p for net in nets for p in net.parameters())):
            tensor.grad = None
        torch.stack([loss.sum() for loss in losses]).sum().backward()

    own, shared = torch.vmap(call), torch.vmap(call, in_dims=(0, 0, None))
    ways = {
        "own_loop": lambda: backward([net(x).square().mean() for net, x in zip(nets, images, strict=True)]),
        "own_batched": lambda: backward([own(weights, buffers, images)]),
        "every_loop": lambda: backward([net(x).square().mean() for net in nets for x in images]),
        "every_batched": lambda: backward([shared(weights, buffers, x) for x in images]),
    }
    found = medians(ways, repeats)
    ratios = {
        f"{kind}_batched_over_loop": found[f"{kind}_batched"] / found[f"{kind}_loop"] for kind in ("own", "every")
    }
    return {name: round(value, 4) for name, value in (found | ratios).items()}


def whole_runs(size: int, batch: int, settings: BackboneSettings, repeats: int) -> dict[str, Any]:
    counts = np.full((DOMAINS, CLASSES), 20)
    counts[:, -5:] = 1  # a tail, without which equal has nothing to spare
    task = Task("bench", tuple(f"c{i}" for i in range(CLASSES)), ("a", "b", "c", "d", "e"), "e", counts)
    methods = {name: build(name, task, settings) for name in MEASURED}
    ways = {
        f"{name}/{phase.name}": step_of(method, phase, batch, size)
        for name, method in methods.items()
        for phase in method.phases()
    }
    found = medians(ways, repeats)

    def seconds(name: str) -> float:
        """A run's training time for each step of agg's run."""
        return sum(phase.share * found[f"{name}/{phase.name}"] for phase in methods[name].phases())

    return {
        name: {
            "seconds": {phase.name: round(found[f"{name}/{phase.name}"], 4) for phase in method.phases()},
            "run_in_runs_of_agg": round(seconds(name) / seconds("agg"), 2),
            "parameters": sum(p.numel() for p in method.parameters()),
        }
        for name, method in methods.items()
    }


def build(name: str, task: Task, settings: BackboneSettings) -> Method:
    entry = METHODS[name]
    problem = Problem(
        task=task,
        embeddings=ClassEmbeddings(task.classes, torch.randn(CLASSES, 40)),
        backbone=build_backbone(settings),
        feature_dim=8 * settings.width,
    )
    method = entry.method(entry.method.Config(**entry.settings), problem)
    return method if method.second_order else method.to(memory_format=torch.channels_last)


def step_of(method: Method, phase: Phase, batch: int, size: int) -> Callable[[], None]:
    """A step in the middle of the phase, with what it leaves frozen."""
    learnable = frozenset(name for name, p in method.named_parameters() if p.requires_grad)
    domains = torch.arange(DOMAINS).repeat_interleave(batch * method.batches_per_step)
    images = torch.randn(len(domains), 3, size, size)
    data = Batch(images, torch.randint(CLASSES, (len(domains),)), domains, torch.arange(len(domains)))

    def step() -> None:
        freeze(method.train(), phase, learnable)
        method.zero_grad(set_to_none=True)
        method.loss(data, Clock(0, 50, 100, 1, phase.name)).total.backward()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--record", type=Path, help="JSON file to write the outcome to")
    words = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", message=".*batching rule.*")
    rows = {}
    for name, (size, batch, settings) in SIZES.items():
        rows[name] = {
            "networks": loop_or_batched(size, batch, settings, words.repeats),
            "methods": whole_runs(size, batch, settings, words.repeats),
        }
        print(name, json.dumps(rows[name], indent=1), flush=True)
    if words.record:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, 1 thread, torch {torch.__version__}, float32"
        command = shlex.join(["python", "benchmarks/networks.py", *sys.argv[1:]])
        commit = describe_environment(torch.device("cpu"))["commit"]
        write_json(words.record, {"command": command, "commit": commit, "machine": machine, "rows": rows})


if __name__ == "__main__":
    main()
