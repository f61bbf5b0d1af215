"""Two ranks with a thread each against one rank with two threads: whole steps of training, the loader inside.

    python benchmarks/ranks.py                                  # ltds, 4 domains x 48 images of 64 px, ResNet-10
    python benchmarks/ranks.py --method agg --batch 16 --steps 2 --repeats 5 --record results/ranks.json

Three processes are started once: one alone with two threads, and two ranks with one thread each. Stretches of steps
alternate between the two sides; while one side works, the other waits for its next line of input. Medians of wall time
and of CPU time (of all processes of a side) over the repeats, the first of which warms up. A wall time ratio above 1
says that two ranks are faster. On a busy machine only the ratio of CPU times means something.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
import torch.distributed as dist

from input_pipeline import generated
from ltds.core.files import write_json
from ltds.core.processor import WAIT_POLICY
from ltds.core.ranks import ALONE, Ranks
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.config import resolve
from ltds.engine.environment import describe_environment
from ltds.engine.journal import SilentJournal
from ltds.engine.loop import take_step
from ltds.engine.step_numbers import StepNumbers

CLASSES, DOMAINS = 50, 4
SIDES = {"one rank, two threads": [(0, 1, 2)], "two ranks, one thread each": [(0, 2, 1), (1, 2, 1)]}


def make_dataset(root: Path, images: int) -> None:
    """Generated JPEGs dealt out to domains and classes, and random class embeddings."""
    files = [str(file.relative_to(root)) for file in generated(root, images)]
    number = np.arange(images)
    domains, labels = number % DOMAINS, number // DOMAINS % CLASSES
    splits = np.where(number >= images - DOMAINS * CLASSES, 2, 0)  # the last image of each pair is for test
    names = tuple(f"class{c}" for c in range(CLASSES))
    Manifest(root, "ranks", names, tuple("abcd"), tuple(files), labels, domains, splits, licence="CC0-1.0").write()
    (root / "semantics").mkdir()
    vectors = np.random.default_rng(0).random((CLASSES, 16)).round(4)
    lines = [f"{name},{','.join(map(str, row))}" for name, row in zip(names, vectors, strict=True)]
    header = ",".join(["class", *(f"a{i}" for i in range(16))])
    (root / "semantics" / "attributes.csv").write_text("\n".join([header, *lines]) + "\n")


def work(job: dict[str, Any]) -> None:
    """A process of one side: for each line of input, some steps; answers with wall and CPU seconds."""
    rank, world, threads = job["place"]
    if world > 1:
        store = dist.FileStore(job["store"], world)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(minutes=30))
    config = resolve(
        {
            "data": {"root": job["root"], "size": job["size"], "batch_size": job["batch"]},
            "backbone": {"name": "resnet10", "stem": "medium" if job["size"] <= 64 else "imagenet"},
            "optimizer": {"lr": 1e-4},
            "schedule": {"epochs": 1000},
            "run": {"threads": threads, "device": "cpu"},
            "method": {"name": job["method"]},
        }
    )
    session = assemble(config, Manifest.read(Path(job["root"])), ranks=Ranks(rank, world) if world > 1 else ALONE)
    print("ready", flush=True)
    done = 0
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for step, batch in enumerate(session.batches(done, done + int(line)), done):
            take_step(session, batch, step, StepNumbers(SilentJournal()))
        done += int(line)
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


def start(job: dict[str, Any]) -> subprocess.Popen[str]:
    environment = {**os.environ, **WAIT_POLICY, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, __file__, "--work", json.dumps(job)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def measure(words: argparse.Namespace, root: Path) -> dict[str, dict[str, list[float]]]:
    """Seconds of a step, wall and CPU, by side."""
    job = {"root": str(root / "data"), "store": str(root / "store"), "method": words.method}
    job |= {"batch": words.batch, "size": words.size}
    sides = {name: [start({**job, "place": place}) for place in places] for name, places in SIDES.items()}
    for processes in sides.values():
        for process in processes:
            assert pipe(process.stdout).readline().strip() == "ready"
    found: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in sides}
    for turn in range(words.repeats + 1):
        for name, processes in sides.items():
            for process in processes:
                print(words.steps, file=pipe(process.stdin), flush=True)
            answers = [json.loads(pipe(process.stdout).readline()) for process in processes]
            if turn:
                found[name]["wall"].append(max(wall for wall, _ in answers) / words.steps)
                found[name]["cpu"].append(sum(cpu for _, cpu in answers) / words.steps)
    for processes in sides.values():
        for process in processes:
            process.communicate()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="ltds")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=48, help="images of each of the four domains")
    parser.add_argument("--steps", type=int, default=4, help="steps of one stretch")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--note", default="", help="words for the record, such as how busy the machine was")
    parser.add_argument("--record", type=Path, help="JSON file to write")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.work:
        work(json.loads(words.work))
        return
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").mkdir()
        make_dataset(Path(folder) / "data", max(6, -(-words.batch // CLASSES) + 2) * DOMAINS * CLASSES)
        found = measure(words, Path(folder))
    one, two = found.values()
    walls = [a / b for a, b in zip(one["wall"], two["wall"], strict=True)]
    rows = {
        name: {kind: round(statistics.median(times), 4) for kind, times in of.items()} for name, of in found.items()
    }
    result = {
        "seconds_per_step": rows,
        "throughput_of_two_ranks_over_one": round(statistics.median(walls), 3),
        "throughput_quartiles": [round(q, 3) for q in statistics.quantiles(walls, n=4)[::2]],
        "cpu_time_of_two_ranks_over_one": round(statistics.median(two["cpu"]) / statistics.median(one["cpu"]), 3),
        "load_average": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    print(json.dumps(result, indent=2))
    if words.record:
        asked = {name: getattr(words, name) for name in ("method", "size", "batch", "steps", "repeats", "note")}
        commit = describe_environment(torch.device("cpu"))["commit"]
        write_json(words.record, {"command": "python benchmarks/ranks.py", "commit": commit, **asked, **result})


if __name__ == "__main__":
    main()
