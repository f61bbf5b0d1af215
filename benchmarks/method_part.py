"""Time and memory of the method's own part of a step: losses, statistics, projections; no backbone.

    python benchmarks/method_part.py                      # C = 50, 200, 1000, 2000; both ways; augmentation off and on
    python benchmarks/method_part.py --classes 10000 --ways fused --augment on --repeats 1

One step is what LT-DS does with features already computed: 3 meta-train domains of 48 samples, the inner step of the
classifier and the two projectors, one meta-test domain of 48. Every case runs in a process of its own, so its peak
memory is its own: ru_maxrss less what was resident before the first step (model and statistics), an upper bound where
the preparation peaked higher than the step. Times also come in units of one 2048^3 float32 matrix product timed around
each step, because seconds depend on the machine. Memory is measured with the allocator as it is, time with retained
arenas, as in a long run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from ltds.losses.alignment import align_prototypes, back_to_visual
from ltds.losses.augmentation import augmentation
from ltds.losses.calibrated import calibrated_cross_entropy, log_counts
from ltds.losses.margin_contrast import visual_to_semantic
from ltds.nn.inner_step import call_with, fast_weights, gradients, part
from ltds.nn.projector import Projector
from ltds.stats.covariance import OnlineCovariance
from ltds.stats.neighbours import nearest_classes, neighbour_covariance
from ltds.stats.prototypes import Prototypes, completed

K, PER_DOMAIN, D, S = 4, 48, 512, 300
SPHERE = {"margin": 0.1, "temperature": 1 / 30}
RETAINED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "34359738368", "MALLOC_TOP_PAD_": "268435456"}
WAYS: dict[str, bool | None] = {"plain": False, "fused": True, "auto": None}


class MethodPart:
    """Heads, statistics and fixed random features of one step; calling it does the step."""

    def __init__(self, classes: int, fused: bool | None, augment: bool) -> None:
        self.fused, self.augment = fused, augment
        self.heads = nn.ModuleDict({"h": nn.Linear(D, classes), "e": Projector(D, S), "d": Projector(S, D)})
        self.semantics = nn.functional.normalize(torch.randn(classes, S), dim=1)
        counts = torch.randint(1, 100, (K, classes)).float()
        self.log_n, self.class_sizes = log_counts(counts), counts.sum(0)
        self.prototypes = Prototypes(K, classes, D)
        self.prototypes.value.uniform_()  # a run under way: every class was met
        self.prototypes.present.fill_(True)
        self.covariance = OnlineCovariance(classes, D)
        self.neighbours = nearest_classes(self.semantics, min(5, classes))
        self.features = torch.rand(K * PER_DOMAIN, D)
        self.labels = torch.randint(classes, (K * PER_DOMAIN,))
        self.domains = torch.arange(K).repeat_interleave(PER_DOMAIN)

    def __call__(self) -> None:
        train, test = self.domains < K - 1, self.domains == K - 1
        features = self.features.clone().requires_grad_()
        theta = dict(self.heads.named_parameters())
        meta_train = self.meta_train(features[train], self.labels[train], self.domains[train])
        *grads, _ = gradients(meta_train, {**theta, "features": features})
        fast = fast_weights(theta, grads, 0.2)
        held_out = features.detach()[test].requires_grad_()
        meta_test = self.meta_test(fast, held_out, self.labels[test])
        *again, _ = gradients(meta_test, {**fast, "features": held_out})
        torch._foreach_add_(grads, again, alpha=0.3)

    def meta_train(self, f: Tensor, labels: Tensor, domains: Tensor) -> Tensor:
        h, e, d = self.heads["h"], self.heads["e"], self.heads["d"]
        log_n, logits = self.log_n[domains], h(f)
        loss = calibrated_cross_entropy(logits, labels, log_n).mean()
        projected = torch.cat([e(part_) for part_ in f.split(PER_DOMAIN)])
        loss = loss + 0.1 * visual_to_semantic(projected, labels, self.semantics, log_n=log_n, **SPHERE).mean()
        self.view = self.prototypes.blended(f, labels, domains)
        self.prototypes.commit(self.view)
        tables = completed(self.view, self.semantics, e)
        self.view = self.view.detach()
        loss = loss + 0.1 * align_prototypes(tables, self.semantics, fused=self.fused, **SPHERE)
        visual = torch.stack([d(t) for t in tables])
        cycled = torch.stack([e(v) for v in visual])
        loss = loss + 0.1 * back_to_visual(visual, h.weight, h.bias, cycled, self.semantics, fused=self.fused, **SPHERE)
        if self.augment:
            self.covariance.update(f, labels)
            self.sigma = neighbour_covariance(self.covariance.sigma, self.neighbours, self.class_sizes)
            loss = loss + 0.1 * augmentation(logits, labels, h.weight, self.sigma, 5.0, log_n=log_n).mean()
        return loss

    def meta_test(self, fast: dict[str, Tensor], f: Tensor, labels: Tensor) -> Tensor:
        log_n = self.log_n[K - 1]
        weight, bias, e = fast["h.weight"], fast["h.bias"], part(fast, "e")
        logits = nn.functional.linear(f, weight, bias)
        projected = call_with(self.heads["e"], e, f)
        tables = completed(self.view, self.semantics, lambda v: call_with(self.heads["e"], e, v))
        loss = calibrated_cross_entropy(logits, labels, log_n).mean()
        loss = loss + 0.1 * visual_to_semantic(projected, labels, self.semantics, log_n=log_n, **SPHERE).mean()
        loss = loss + 0.1 * visual_to_semantic(projected, labels, tables, log_n=log_n, **SPHERE).mean()
        if self.augment:
            loss = loss + 0.1 * augmentation(logits, labels, weight, self.sigma, 5.0, log_n=log_n).mean()
        return loss


def measure(classes: int, way: str, augment: bool, repeats: int) -> dict[str, float]:
    """Median seconds and matrix-product units of a step, and its peak megabytes."""
    torch.manual_seed(0)
    step = MethodPart(classes, WAYS[way], augment)
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    product_seconds(a, b)
    before = resident_mb()
    step()
    seconds, units = [], []
    for _ in range(repeats):
        around = product_seconds(a, b)
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        units.append(2 * seconds[-1] / (around + product_seconds(a, b)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": statistics.median(seconds),
        "units": statistics.median(units),
        "peak_mb": peak - before,
    }


def resident_mb() -> float:
    """Megabytes resident now; the high-water mark would hide what the preparation used and gave back."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def product_seconds(a: Tensor, b: Tensor) -> float:
    start = time.perf_counter()
    a @ b
    return time.perf_counter() - start


def in_own_process(case: list[str], repeats: int, threads: int, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", *case, "--repeats", str(repeats), "--threads", str(threads)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[50, 200, 1000, 2000])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["plain", "fused"])
    parser.add_argument("--augment", nargs="+", choices=["off", "on"], default=["off", "on"])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", nargs=3, metavar=("CLASSES", "WAY", "AUGMENT"), help="one case, in this process")
    options = parser.parse_args()
    if options.case:
        torch.set_num_threads(options.threads)
        classes, way, augment = options.case
        print(json.dumps(measure(int(classes), way, augment == "on", options.repeats)))
        return
    print(f"{'C':>6} {'way':>6} {'augment':>8} {'seconds':>9} {'products':>9} {'peak MB':>8}")
    for classes in options.classes:
        for augment in options.augment:
            for way in options.ways:
                case = [str(classes), way, augment]
                memory = in_own_process(case, 1, options.threads, {})
                timed = in_own_process(case, options.repeats, options.threads, RETAINED)
                numbers = f"{timed['seconds']:9.4f} {timed['units']:9.2f} {memory['peak_mb']:8.0f}"
                print(f"{classes:6d} {way:>6} {augment:>8} {numbers}", flush=True)


if __name__ == "__main__":
    main()
