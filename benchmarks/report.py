"""How long `ltds report` takes on many runs: writes run directories with invented numbers, then times the command.

    python benchmarks/report.py --runs 200 --out results/report.json
    python benchmarks/report.py --runs 200 --folder /tmp/many     # keeps the runs there, for a profile
    python benchmarks/report.py --runs 200 --against OTHER/src    # in turns with the code of another commit

The runs look like those on Bestiary: 50 classes, 5 domains, 8 methods, a journal line for each step. The runs of seed 0
have predictions for 10,500 test images, features of 2,000 and thumbnails. Nothing is trained. Seconds on the processor
are those of the command and of all processes that it starts; a busy machine moves them less than those by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ltds.core.files import write_json
from ltds.core.runs import RunDirectory
from ltds.core.task import Task
from ltds.evaluation.features import FeatureTable, to_float16
from ltds.evaluation.protocol import VERSION
from ltds.evaluation.table import PredictionTable
from ltds.evaluation.thumbnails import save_thumbnails
from ltds.reporting.glossary import METRICS

CLASSES = tuple(f"class {c}" for c in range(50))
DOMAINS = ("plain", "impasto", "pastel", "anime", "woodblock")
METHODS = 8
IMAGES = 42  # test images of each pair of domain and class


def write_run(path: Path, method: int, held_out: str, seed: int, steps: int) -> None:
    """A finished, evaluated run directory with invented numbers."""
    rng = np.random.default_rng([seed, DOMAINS.index(held_out), method])
    counts = np.tile(np.geomspace(100, 1, len(CLASSES)).astype(np.int64), (len(DOMAINS) - 1, 1))
    counts[:, -2:] = 0  # open classes
    task = Task("invented", CLASSES, DOMAINS, held_out, counts)
    run = RunDirectory(path)
    run.write_config({"method": {"name": f"method-{method}"}, "data": {"held_out": held_out}, "run": {"seed": seed}})
    run.write_task(task)
    run.write_environment({"commit": "0" * 40, "command": f"ltds train --out {path.name}", "parameters": 12_000_000})
    run.journal_file.write_text("".join(json.dumps(line) + "\n" for line in journal(rng, steps)))
    run.write_metrics(metrics(task, rng))
    if seed == 0:
        write_arrays(run, rng, with_diagnostics=method == METHODS - 1)
    run.mark_done()


def journal(rng: np.random.Generator, steps: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step, (a, b, seconds) in enumerate(rng.random((steps, 3)).tolist(), start=1):
        lines.append({"kind": "step", "step": step, "epoch": step // 20, "lr": 0.2, "loss": a + b,
                      "terms": {"dc": a, "z2s": b, "s2s": a * b, "s2z": a * a, "aug": b * b},
                      "seconds": round(seconds, 4)})  # fmt: skip
        if step % 20 == 0:
            per_domain = dict.fromkeys(DOMAINS, a)
            lines.append({"kind": "validation", "step": step, "epoch": step // 20, "split": "val", "accuracy": a,
                          "per_domain": per_domain, "best": False})  # fmt: skip
            pairs = {f"{one}/{other}": b for one in DOMAINS[:4] for other in DOMAINS[:4] if one < other}
            lines.append({"kind": "frechet", "step": step, "epoch": step // 20, "pairs": pairs, "mean": b})
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
        "pairs": {
            "accuracy": accuracy.tolist(),
            "images": [[IMAGES] * len(CLASSES)] * len(DOMAINS),
            "seen": task.seen_in_domain.tolist(),
        },
    }


def write_arrays(run: RunDirectory, rng: np.random.Generator, with_diagnostics: bool) -> None:
    """Predictions, features and thumbnails, with as much structure as those of a model that is half right."""
    labels = np.tile(np.repeat(np.arange(len(CLASSES)), IMAGES), len(DOMAINS))
    domains = np.repeat(np.arange(len(DOMAINS)), IMAGES * len(CLASSES))
    rows = np.arange(len(labels))
    logits = rng.normal(size=(len(rows), len(CLASSES))).astype(np.float32)
    logits[rows, labels] += 2
    PredictionTable(logits, labels, domains, rows).save(run.predictions_file("test"))
    drawn = np.random.default_rng(0).permutation(rows)[:2000]
    centres = rng.normal(size=(len(CLASSES), 192))
    features = centres[labels[drawn]] + rng.normal(size=(len(drawn), 192))
    square = rng.random((len(CLASSES), len(CLASSES)))
    projected = features[:, :64]
    diagnostics = {"embeddings": square, "covariances": square, "updated": square, "projected": projected}
    stored = {name: to_float16(value) for name, value in diagnostics.items()} if with_diagnostics else {}
    FeatureTable(to_float16(features), labels[drawn], domains[drawn], drawn, stored).save(run.features_file)
    pictures = {int(row): rng.integers(0, 255, (32, 32, 3), dtype=np.uint8) for row in drawn[:60]}
    save_thumbnails(run.thumbnails_file, pictures)


def write_runs(folder: Path, runs: int, steps: int) -> None:
    for i in range(runs):
        seed, place = divmod(i, METHODS * len(DOMAINS))
        method, domain = divmod(place, len(DOMAINS))
        write_run(folder / f"method-{method}-{DOMAINS[domain]}-{seed}", method, DOMAINS[domain], seed, steps)


def timed(words: list[str], source: Path | None = None) -> dict[str, float]:
    """Seconds that a command takes by the clock, and on the processor with all processes that it starts."""
    code = os.environ | ({"PYTHONPATH": str(source)} if source else {})
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ltds", *words],
        check=True,
        env=code,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(wall, 2), "processor_seconds": round(processor, 2)}


def measure(folder: Path, repeats: int, against: Path | None) -> dict[str, Any]:
    """Medians over the repeats; `ratio`: of this code to the other, in seconds on the processor, over the turns."""
    page = folder.parent / "report.html"
    words = ["report", str(folder), "--out", str(page)]
    sources = {"this": None, **({"other": against} if against else {})}
    turns: list[dict[str, dict[str, float]]] = []
    for _ in range(repeats):
        turns.append({name: timed(words, source) for name, source in reversed(sources.items())})
    found: dict[str, Any] = {"page_megabytes": round(page.stat().st_size / 1e6, 2), "turns": turns}
    for name in sources:
        found[name] = {key: statistics.median(turn[name][key] for turn in turns) for key in turns[0][name]}
    if against:
        ratios = [turn["this"]["processor_seconds"] / turn["other"]["processor_seconds"] for turn in turns]
        found["ratio"] = round(statistics.median(ratios), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--steps", type=int, default=2400, help="lines of each journal")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--against", type=Path, help="folder src of another commit")
    parser.add_argument("--folder", type=Path, help="keep the runs here")
    parser.add_argument("--out", type=Path, help="a JSON file for the times")
    words = parser.parse_args()
    found: dict[str, Any] = {}
    for runs in words.runs:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (words.folder or Path(temporary)) / f"{runs}-runs"
            if not folder.exists():
                write_runs(folder, runs, words.steps)
            found[str(runs)] = measure(folder, words.repeats, words.against)
        print(f"{runs} runs: {found[str(runs)]}", flush=True)
    if words.out:
        what = "ltds report RUNS --out report.html, by runs; medians of turns; the other: the code before"
        write_json(words.out, {"what": what, "steps": words.steps, "runs": found})


if __name__ == "__main__":
    main()
