"""Methods against each other on Bestiary: every held-out domain, several seeds, one command.

    python benchmarks/compare.py --methods agg,bsce,dc,ltds --seeds 0,1,2 --jobs 2 --record results/bestiary_methods

Resumable: finished runs are not repeated, interrupted ones go on from their checkpoint. Writes RECORD.json (every
number, mean and spread, command, commit) and RECORD.md (the table). `--set` takes settings for all runs, and
`--split val` prints source-validation accuracy only: what a choice of settings may look at.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ltds.cli.screen import Screen
from ltds.core.config import parse_overrides
from ltds.core.errors import ConfigError
from ltds.core.files import write_json, write_text
from ltds.core.runs import RunDirectory
from ltds.data.builders.bestiary import build
from ltds.data.manifest import Manifest


@dataclass(frozen=True)
class Cell:
    """One run: a method, a held-out domain, a seed."""

    out: Path
    data: Path
    method: str
    held_out: str
    seed: int
    overrides: tuple[str, ...]

    @property
    def run(self) -> RunDirectory:
        return RunDirectory(self.out / f"{self.method}-{self.held_out or 'oracle'}-{self.seed}")


def work(cell: Cell) -> Cell:
    """Train or continue a cell, in a process of its own with one thread: two such runs beat one on two threads."""
    from ltds.engine.config import resolve
    from ltds.engine.start import create_run, resume_run

    manifest = Manifest.read(cell.data)
    layer = {
        "data": {"root": str(cell.data.resolve()), "held_out": cell.held_out},
        "method": {"name": cell.method},
        "run": {"seed": cell.seed, "threads": 1},
    }
    config = resolve(layer, parse_overrides(cell.overrides), dataset=manifest.name)
    if not cell.run.exists:
        create_run(cell.run, config, manifest)
    elif resolve(cell.run.read_config()) != config:
        raise ConfigError(
            f"Expected '{cell.run.path}' to have these settings, but it has others. Choose another --out."
        )
    elif not cell.run.done:
        resume_run(cell.run)
    return cell


def train_all(cells: list[Cell], jobs: int, screen: Screen) -> None:
    with (
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
        screen.track("Runs", len(cells)) as advance,
    ):
        for future in as_completed([pool.submit(work, cell) for cell in cells]):
            cell = future.result()
            accuracy = cell.run.read_metrics()["choices"]["model"]["validation_accuracy"]
            advance(note=cell.run.path.name)
            print(f"{cell.run.path.name}: validation {100 * accuracy:.1f} %", flush=True)


def statistics(cells: list[Cell]) -> dict[str, Any]:
    """Per method and number: mean over seeds of the average over held-out domains, and its standard deviation."""
    table: dict[str, Any] = {}
    for method in dict.fromkeys(cell.method for cell in cells):
        own = [
            (cell.seed, cell.held_out, cell.run.read_metrics()["summary"]) for cell in cells if cell.method == method
        ]
        table[method] = {}
        for name in own[0][2]:
            by_seed = {
                seed: [100 * s[name] for other, _, s in own if other == seed and s[name] is not None]
                for seed, _, _ in own
            }
            averages = [float(np.mean(values)) for values in by_seed.values() if values]
            spread = float(np.std(averages, ddof=1)) if len(averages) > 1 else None
            table[method][name] = {"mean": float(np.mean(averages)), "sd": spread} if averages else None
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="agg,bsce,dc,ltds")
    parser.add_argument("--held-out", default="all", help="comma-separated domains")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs/compare"))
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--split", choices=["test", "val"], default="test")
    parser.add_argument("--record", type=Path)
    words = parser.parse_args()
    screen = Screen()
    manifest = build(words.out / "data", progress=screen)
    domains = manifest.domains if words.held_out == "all" else words.held_out.split(",")
    cells = [
        Cell(words.out, manifest.root, method, domain, int(seed), tuple(words.overrides))
        for seed in words.seeds.split(",")
        for domain in domains
        for method in words.methods.split(",")
    ]
    train_all(cells, words.jobs, screen)
    if words.split == "val":
        for method in words.methods.split(","):
            own = [c.run.read_metrics()["validation"]["accuracy"] for c in cells if c.method == method]
            print(f"{method}: validation {100 * np.mean(own):.2f} % over {len(own)} runs")
        return
    table = statistics(cells)
    for method, numbers in table.items():
        print(method, {n: round(v["mean"], 1) for n, v in numbers.items() if v})
    if words.record:
        record(words.record, cells, table)


def record(file: Path, cells: list[Cell], table: dict[str, Any]) -> None:
    from ltds.report.collect import collect
    from ltds.report.table import markdown_table

    commits = sorted({str(cell.run.read_environment()["commit"]) for cell in cells})
    outcome = {
        "command": shlex.join(["python", "benchmarks/compare.py", *sys.argv[1:]]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {cells[0].run.read_environment()['torch']}",
        "commits": commits,
        "unit": "percent; mean over seeds of the average over held-out domains, sample sd over seeds",
        "model_choice": "best epoch by mean source-validation accuracy; h_oracle's threshold alone is chosen on test",
        "methods": table,
        "runs": {cell.run.path.name: cell.run.read_metrics()["summary"] for cell in cells},
    }
    write_json(file.with_suffix(".json"), outcome)
    write_text(file.with_suffix(".md"), markdown_table(collect([cell.run.path for cell in cells])))


if __name__ == "__main__":
    main()
