"""How a step of ltds grows: over classes, all of them contrasted or a sample; over domains and the sizes of vectors.

    python benchmarks/growth.py --table steps          # a whole step, in floors (see benchmarks/step.py), 64 px, 4 x 48
    python benchmarks/growth.py --table classes        # without the backbone, in products of two 2048 x 2048 matrices
    python benchmarks/growth.py --table vectors        # the same over domains, features and embeddings
    python benchmarks/growth.py --table gradients      # how far a sampled contrast is from the whole one
    python benchmarks/growth.py --table all --record results/growth.json

One thread. Every case is a fork of one process that has imported torch; step and unit alternate in it. Compare
`cpu_ratio`, medians of processor time, if others use the machine. Memory is the peak of the first step above what was
resident before. `--long` adds 5,000 and 10,000 classes of which all are contrasted: a step takes a minute.

gradients: the gradient of 0.1 L_S2S + 0.1 L_S2Z by all parameters and by the features of the batch, for one batch and
some draws of classes: `mean_error`, the norm of (mean gradient over draws - full gradient) over that of the full one;
`noise`, what of it the finite number of draws explains; `cosine`, median over single draws with the full one.
`whole_cosine` is that of the whole step's gradient (L_mtr + w_mte L_mte) with its full form. Two states: "random"
prototypes and embeddings, and "similar", embeddings in groups of ten that have a cosine of about 0.8, with prototypes
of the same geometry; near classes are what a random sample misses.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ltds.core.files import write_json
from ltds.core.types import Clock
from ltds.engine.environment import describe_environment
from ltds.methods.meta_ltds import MetaLtds
from step import DEFAULTS, machine, make, measure_memory, measure_time

Case = dict[str, Any]


def step_cases(long: bool) -> list[Case]:
    """A whole step, with all classes or with M of them."""
    shared = {"part": "step", "threads": 1, "repeats": 2, "layout": "channels_last"}
    sizes = [(1000, 0), (1000, 250), (10_000, 1000)] + ([(50, 0), (1000, 500), (10_000, 0)] if long else [])
    return [shared | {"classes": classes, "contrast": contrast} for classes, contrast in sizes]


def class_cases(long: bool) -> list[Case]:
    """The method without its backbone over C."""
    sizes = [(50, 0), (200, 0), (1000, 0), (1000, 500), (1000, 250), (2000, 0), (2000, 1000), (2000, 500)]
    sizes += [(5000, 1000), (10_000, 1000), (10_000, 500)] + ([(5000, 0), (10_000, 0)] if long else [])
    shared = {"part": "method", "threads": 1, "repeats": 3}
    return [shared | {"classes": classes, "contrast": contrast} for classes, contrast in sizes]


def vector_cases(long: bool) -> list[Case]:
    """The method without its backbone, one number varied at a time."""
    varied = [{"domains": n} for n in (2, 4, 9)]
    varied += [{"features": n} for n in (128, 2048)] + [{"semantic_width": n} for n in (50, 768)]
    shared = {"part": "method", "threads": 1, "classes": 1000, "repeats": 1}
    return [shared | {"contrast": contrast} | other for contrast in (0, 250) for other in varied]


def gradient_cases(long: bool) -> list[Case]:
    shared = {"part": "method", "threads": 1, "draws": 8}
    sizes = {"similar": [(1000, 250), (1000, 500), (2000, 1000)], "random": [(1000, 250)]}
    return [
        shared | {"classes": classes, "contrast": contrast, "state": state}
        for state, pairs in sizes.items()
        for classes, contrast in pairs
    ]


def measured(case: Case) -> Case:
    return measure_memory(case | {"memory_steps": 1}) | measure_time(case)


def in_a_fork(measure: Callable[[Case], Case], case: Case) -> Case:
    """What a process of its own measures, without importing torch again."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    process = context.Process(target=lambda: other.send(measure(case)))
    process.start()
    other.close()
    found: Case = mine.recv()
    process.join()
    return case | found


def gradient_error(case: Case) -> Case:
    method, batch = make(DEFAULTS | case)
    if case["state"] == "similar":
        make_similar(method)
    features = batch.images.clone().requires_grad_()
    learned = [features, *(p for p in method.parameters() if p.requires_grad)]

    def gradient(step: int, *, whole: bool) -> Tensor:
        clock = Clock(0, step, 100, 1)
        torch.manual_seed(0)
        if whole:
            total = method.loss(batch, clock).total
            found = torch.autograd.grad(total, learned[1:], allow_unused=True)
            return torch.cat([g.flatten() for g in found if g is not None])
        domains = (0, 1, 2)
        outputs = method._forward(method._functions(), replace(batch, images=features), domains)
        prototypes = method.prototypes.blended(outputs.features, outputs.labels, outputs.domains)
        terms, _, _ = method._meta_train(outputs, prototypes, None, domains, clock)
        found = torch.autograd.grad(0.1 * terms["s2s"] + 0.1 * terms["s2z"], learned, allow_unused=True)
        return torch.cat([g.flatten() for g in found if g is not None])

    def with_classes(count: int) -> None:
        method.config = method.config.model_copy(update={"contrast_classes": count})

    state = {name: value.clone() for name, value in method.state_dict().items()}
    with_classes(case["classes"])  # all of them
    full = gradient(0, whole=False)
    with_classes(case["contrast"])
    draws = torch.stack([gradient(step, whole=False) for step in range(case["draws"])])
    noise = (draws.var(0).sum() / len(draws)).sqrt() / full.norm()
    cosines = F.cosine_similarity(draws, full[None]).tolist()
    whole = []
    for step in range(2):
        pair = []
        for count in (case["classes"], case["contrast"]):
            method.load_state_dict(state)
            with_classes(count)
            pair.append(gradient(step, whole=True))
        whole.append(F.cosine_similarity(*pair, dim=0).item())
    return {
        "mean_error": round(((draws.mean(0) - full).norm() / full.norm()).item(), 4),
        "noise": round(noise.item(), 4),
        "cosine": round(statistics.median(cosines), 4),
        "whole_cosine": round(statistics.mean(whole), 5),
    }


def make_similar(method: MetaLtds) -> None:
    """Embeddings in groups of ten, prototypes that a linear map makes of them, as after training."""
    classes, width = method.semantics.vectors.shape
    generator = torch.Generator().manual_seed(1)
    groups = torch.randn((classes + 9) // 10, width, generator=generator).repeat_interleave(10, 0)[:classes]
    own = torch.randn(classes, width, generator=generator)
    method.semantics.vectors.copy_(F.normalize(groups + 0.5 * own, dim=-1))
    there = torch.randn(width, method.prototypes.value.shape[2], generator=generator)
    wanted = (method.semantics.vectors @ there).relu()
    noise = torch.rand(method.prototypes.value.shape, generator=generator)
    method.prototypes.value.copy_(wanted + 0.2 * noise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=["steps", "classes", "vectors", "gradients", "all"], default="all")
    parser.add_argument("--long", action="store_true", help="also the cases that take minutes")
    parser.add_argument("--record", type=Path, help="JSON file in which to replace the tables measured")
    words = parser.parse_args()
    torch.set_num_threads(1)
    kinds = {
        "steps": (step_cases, measured),
        "classes": (class_cases, measured),
        "vectors": (vector_cases, measured),
        "gradients": (gradient_cases, gradient_error),
    }
    commit = describe_environment(torch.device("cpu"))["commit"]
    for table in kinds if words.table == "all" else [words.table]:
        cases, measure = kinds[table]
        rows = []
        for case in cases(words.long):
            rows.append(in_a_fork(measure, case) | {"commit": commit})
            print(rows[-1], flush=True)
        if words.record:
            old = json.loads(words.record.read_text()) if words.record.is_file() else {}
            header = {"command": "python benchmarks/growth.py --table all", "machine": machine()}
            write_json(words.record, old | header | {table: rows})


if __name__ == "__main__":
    main()
