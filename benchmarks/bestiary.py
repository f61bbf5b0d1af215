"""Does Bestiary measure something? An oracle on balanced data of all five domains, and Agg under the LT-DS protocol.

    python benchmarks/bestiary.py [--seeds 0,1,2] [--out runs/bestiary] [--record results/bestiary.json]

(a) The oracle trains on balanced data of every domain (no domain held out), (b) Agg trains on the long-tailed data with
one domain held out, for each of the five. Both have the same network and number of test images; the oracle, which has
nine times the training images, takes twice the steps. Resumable. Exits with 1
unless the oracle exceeds 80 %, Agg's Acc-U lies between 20 % and 50 %, tail classes lie clearly below head classes and
pairs unseen in training clearly below seen ones.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ltds.benchmarking.cells import GridCell, cells_of
from ltds.benchmarking.grid import Grid
from ltds.benchmarking.local import LocalExecutor
from ltds.benchmarking.runner import running
from ltds.cli.live import watching
from ltds.cli.screen import Screen
from ltds.core.config import parse
from ltds.core.files import write_json
from ltds.data.datasets.bestiary import BestiaryConfig, build

BALANCED = {"n_max": 313, "n_min": 313, "head": 1.0, "exclusive": 0}  # every kind as often as the most frequent one
LONGER = {"schedule": {"epochs": 60}}  # twice the steps, for nine times the images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs/bestiary"))
    parser.add_argument("--record", type=Path, help="JSON file to write the outcome to")
    words = parser.parse_args()
    screen, seeds = Screen(), [int(seed) for seed in words.seeds.split(",")]
    tailed = build(words.out / "data", progress=screen)
    balanced = build(words.out / "data-balanced", BestiaryConfig(**BALANCED), progress=screen)
    common = {"data": "bestiary", "methods": ["agg"], "seeds": seeds}
    everyone = cells_of(parse(Grid, common), words.out, lambda _: tailed)
    oracle = cells_of(parse(Grid, {**common, "held_out": [""], "settings": LONGER}), words.out, lambda _: balanced)
    cells = [*oracle, *everyone]
    executor = LocalExecutor(words.jobs)
    with running(cells, executor, words.out, progress=screen) as ended, watching(cells, words.jobs) as news:
        for cell in ended:
            news(cell)
    outcome = {
        "command": shlex.join(["python", "benchmarks/bestiary.py", *sys.argv[1:]]),
        "commits": sorted({str(cell.run.read_environment()["commit"]) for cell in cells}),
        "seeds": seeds,
        "balanced": BALANCED,
        "unit": "percent; mean over seeds (of the average over held-out domains), sample sd over seeds",
        "oracle": statistics(oracle),
        "agg": statistics(everyone),
        "agg_by_held_out": {d: statistics([c for c in everyone if c.held_out == d]) for d in tailed.domains},
    }
    for name in ("oracle", "agg"):
        print(name, {key: round(value["mean"], 1) for key, value in outcome[name].items() if value})
    for domain, table in outcome["agg_by_held_out"].items():
        print(domain, "Acc-U", round(table["acc_u"]["mean"], 1))
    if words.record:
        write_json(words.record, outcome)
    sys.exit(0 if all(conditions(outcome)) else 1)


def statistics(cells: Sequence[GridCell]) -> dict[str, Any]:
    """Per metric: mean over seeds of the average over held-out domains, and its standard deviation."""
    summaries = [(cell.seed, cell.run.read_metrics()["summary"]) for cell in cells]
    table: dict[str, Any] = {}
    for name in summaries[0][1]:
        values = {seed: [100 * s[name] for other, s in summaries if other == seed and s[name] is not None]
                  for seed, _ in summaries}  # fmt: skip
        averages = [float(np.mean(found)) for found in values.values() if found]
        spread = float(np.std(averages, ddof=1)) if len(averages) > 1 else None
        table[name] = {"mean": float(np.mean(averages)), "sd": spread} if averages else None
    return table


def conditions(outcome: dict[str, Any]) -> list[bool]:
    """What the dataset promises, each printed as met or missed."""
    oracle, agg = outcome["oracle"]["acc"]["mean"], {k: v["mean"] for k, v in outcome["agg"].items() if v}
    promises = {
        "the oracle exceeds 80 %": oracle > 80,
        "Agg's Acc-U lies between 20 % and 50 %": 20 < agg["acc_u"] < 50,
        "tail classes lie 15 points below head classes": agg["few"] < agg["many"] - 15,
        "unseen pairs lie 15 points below seen ones": agg["unseen_pairs"] < agg["seen_pairs"] - 15,
    }
    for promise, kept in promises.items():
        print("met   " if kept else "MISSED", promise)
    return list(promises.values())


if __name__ == "__main__":
    main()
