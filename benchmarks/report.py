"""How long `ltds report` takes on many runs: writes run directories with invented numbers, then times each part.

    python benchmarks/report.py --runs 1000 --steps 3000

The runs look like those on AWA2-LTS: 50 classes, 5 domains, a journal line for each step. Nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.evaluation.protocol import VERSION
from ltds.reporting.glossary import METRICS

CLASSES = tuple(f"class {c}" for c in range(50))
DOMAINS = ("original", "hayao", "shinkai", "vangogh", "ukiyoe")
SEEDS = 10


def write_run(path: Path, method: str, held_out: str, seed: int, steps: int) -> None:
    """A finished, evaluated run directory with invented numbers."""
    rng = np.random.default_rng([seed, DOMAINS.index(held_out), len(method)])
    counts = np.tile(np.geomspace(100, 1, len(CLASSES)).astype(np.int64), (len(DOMAINS) - 1, 1))
    task = Task("invented", CLASSES, DOMAINS, held_out, counts)
    run = RunDirectory(path)
    run.write_config({"method": {"name": method}, "data": {"held_out": held_out}, "run": {"seed": seed}})
    run.write_task(task)
    run.write_environment({"commit": "0" * 40, "command": f"ltds train --out {path.name}", "parameters": 12_000_000})
    run.journal_file.write_text("".join(json.dumps(line) + "\n" for line in journal(rng, steps)))
    run.write_metrics(metrics(task, rng))
    run.mark_done()


def journal(rng: np.random.Generator, steps: int) -> list[dict[str, Any]]:
    lines = []
    for step, (a, b, seconds) in enumerate(rng.random((steps, 3)).tolist(), start=1):
        lines.append({"kind": "step", "step": step, "epoch": 0, "phase": "train", "lr": 0.001, "loss": a + b,
                      "terms": {"ce": a, "z2s": b}, "seconds": seconds, "loading": 0.001})  # fmt: skip
        if step % 100 == 0:
            lines.append({"kind": "validation", "step": step, "epoch": 0, "accuracy": a, "best": False})
    return lines


def metrics(task: Task, rng: np.random.Generator) -> dict[str, Any]:
    accuracy = rng.random((len(DOMAINS), len(CLASSES)))
    classes = zip(CLASSES, task.class_counts.tolist(), accuracy.mean(axis=0).tolist(), strict=True)
    return {
        "version": VERSION,
        "task": {"name": task.name, "held_out": task.held_out},
        "choices": {},
        "summary": {key: float(rng.random()) for key in METRICS},
        "per_class": [{"class": name, "train_images": n, "accuracy": a} for name, n, a in classes],
        "pairs": {"accuracy": accuracy.tolist(), "seen": task.seen_in_domain.tolist()},
    }


def timed(name: str, work: Callable[[], Any]) -> Any:
    """What the work returns; prints its time by the clock and on the processor, which a busy machine moves less."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    print(
        f"{name:<12} {time.perf_counter() - start:6.2f} s   processor {time.process_time() - used:6.2f} s", flush=True
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=3000, help="lines of each journal")
    arguments = parser.parse_args()
    from ltds.cli.report import show
    from ltds.reporting.collection import collect
    from ltds.reporting.formats import FORMATS
    from ltds.reporting.write import write_report

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for i in range(arguments.runs):
            place, seed = divmod(i, SEEDS)
            method, held_out = f"method-{place // len(DOMAINS):02}", DOMAINS[place % len(DOMAINS)]
            write_run(root / f"{method}-{held_out}-{seed}", method, held_out, seed, arguments.steps)
        start, used = time.perf_counter(), time.process_time()
        found = timed("collect", lambda: collect([root]))
        timed("screen", lambda: show(found))
        for ending in FORMATS:
            file = root / f"report{ending}"
            timed(ending, partial(write_report, found, [file]))
        spent, size = time.process_time() - used, (root / "report.html").stat().st_size / 1e6
        print(f"{'all':<12} {time.perf_counter() - start:6.2f} s   processor {spent:6.2f} s")
        print(f"{len(found.runs)} runs, page {size:.1f} MB")


if __name__ == "__main__":
    main()
