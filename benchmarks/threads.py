"""What the command sets before torch loads: waiting threads that sleep, and freed memory that stays.

    python benchmarks/threads.py --compare wait            # idle: alone; busy: two runs at once on the same cores
    python benchmarks/threads.py --compare memory --classes 1000

Each kind of process trains steps of ltds (ResNet-10, as benchmarks/step.py) when it is told to; all are alive during
the whole measurement and take turns, so that other work on the machine hits all kinds alike. Medians over turns, wall
time and processor time of a stretch of steps.

wait: `torch` waits as torch does by default, `ltds` as the command sets it (core/processor.py). `alone` is one process
with a thread for each core; `together` is two of them at once, whose wall time is compared with the sum of two alone.
memory: the same with malloc as it comes, and with freed memory retained; also peak memory.
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
from typing import Any

from ltds.core.files import write_json
from ltds.core.processor import WAIT_POLICY, cores, retain_memory, set_environment

KINDS = {"wait": ("torch", "ltds"), "memory": ("malloc as it comes", "retained")}


def serve(kind: str, words: argparse.Namespace) -> None:
    """The side of a process: a stretch of steps for each line that comes, answered with its times."""
    if kind != "torch":
        set_environment()
    if kind not in ("torch", "malloc as it comes"):
        retain_memory()
    from step import CLOCKS, make

    case = {"part": "step", "classes": words.classes, "batch": words.batch, "size": words.size, "order": "first"}
    method, batch = make(case)

    def step() -> None:
        method.zero_grad(set_to_none=True)
        method.loss(batch, CLOCKS["augmentation on"]).total.backward()

    step()
    for _ in sys.stdin:
        start, used = time.perf_counter(), time.process_time()
        for _ in range(words.steps):
            step()
        answer = time.perf_counter() - start, time.process_time() - used
        print(*answer, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


class Trainer:
    """A process of one kind."""

    def __init__(self, kind: str, words: list[str]) -> None:
        plain = {name: value for name, value in os.environ.items() if name not in (*WAIT_POLICY, "OMP_NUM_THREADS")}
        command = [sys.executable, __file__, *words, "--serve", kind]
        self.process = subprocess.Popen(command, env=plain, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def times(self) -> tuple[float, float, float]:
        assert self.process.stdout is not None
        wall, used, peak = map(float, self.process.stdout.readline().split())
        return wall, used, peak


def measured(trainers: list[Trainer]) -> tuple[float, float, float]:
    """Wall time until all have ended their stretch, their processor time, and the peak memory of the first, in MB."""
    start = time.perf_counter()
    for trainer in trainers:
        trainer.start()
    times = [trainer.times() for trainer in trainers]
    return time.perf_counter() - start, sum(used for _, used, _ in times), times[0][2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", choices=KINDS, default="wait")
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4, help="steps of a stretch")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=300, help="begin no turn after so long")
    parser.add_argument("--record", type=Path, help="JSON file to add the row to")
    parser.add_argument("--only", help="one of the two kinds: a busy machine may never end a step of the other")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.serve:
        serve(words.serve, words)
        return
    given = [f"--{name}={getattr(words, name)}" for name in ("classes", "size", "batch", "steps")]
    kinds = [words.only] if words.only else KINDS[words.compare]
    trainers = {kind: [Trainer(kind, given) for _ in range(2)] for kind in kinds}
    for pair in trainers.values():
        measured(pair)  # warms up
    found: dict[str, list[tuple[float, float, float]]] = {}
    before = os.getloadavg()
    began = time.perf_counter()
    for turn in range(words.turns):
        if turn > 1 and time.perf_counter() - began > words.seconds:
            break
        for kind, pair in trainers.items():
            found.setdefault(f"{kind}, alone", []).append(measured(pair[:1]))
        if words.compare == "wait":
            for kind, pair in trainers.items():
                found.setdefault(f"{kind}, together", []).append(measured(pair))
        print({name: [round(number, 2) for number in rows[-1]] for name, rows in found.items()}, file=sys.stderr)
    for pair in trainers.values():
        for trainer in pair:
            trainer.process.communicate()
    row = summary(words, found) | {"load_average": [round(before[0], 1), round(os.getloadavg()[0], 1)]}
    print(json.dumps(row, indent=1))
    if words.record:
        old = json.loads(words.record.read_text())["rows"] if words.record.is_file() else []
        write_json(words.record, {"command": "python benchmarks/threads.py", "rows": [*old, row]})


def summary(words: argparse.Namespace, found: dict[str, list[tuple[float, float, float]]]) -> dict[str, Any]:
    times = {
        name: {
            "wall_seconds": round(statistics.median(wall for wall, _, _ in rows), 3),
            "processor_seconds": round(statistics.median(used for _, used, _ in rows), 3),
            "peak_mb": round(max(peak for _, _, peak in rows)),
        }
        for name, rows in found.items()
    }
    before, now = KINDS[words.compare]
    ratios: dict[str, float] = {}
    for place, name in enumerate(("wall", "processor")) if not words.only else ():
        pairs = zip(found[f"{now}, alone"], found[f"{before}, alone"], strict=True)
        ratios[f"alone_{name}"] = round(statistics.median(a[place] / b[place] for a, b in pairs), 3)
    kinds = [words.only] if words.only else [before, now]
    for kind in kinds if words.compare == "wait" else ():
        pairs = zip(found[f"{kind}, together"], found[f"{kind}, alone"], strict=True)
        ratios[f"together_over_two_alone_{kind}"] = round(statistics.median(a[0] / (2 * b[0]) for a, b in pairs), 3)
    asked = {name: getattr(words, name) for name in ("compare", "classes", "size", "batch", "steps")}
    asked["turns"] = len(next(iter(found.values())))
    return {**asked, "cores": cores(), "times": times, "ratios": ratios}


if __name__ == "__main__":
    main()
