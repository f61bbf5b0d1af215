"""Does Bestiary measure something? An oracle on balanced data of all five domains, and Agg under the LT-DS protocol.

    python benchmarks/bestiary.py [--seeds 0] [--out runs/bestiary-proof] [--record results/bestiary.json]

(a) The oracle trains on balanced data of every domain (no domain held out), (b) Agg trains on the long-tailed data with
one domain held out, for each of the five. Both have the same network, steps and test images. Resumable: what is done
is not done again. What it must show: the oracle above 80 %, Agg's Acc-U between 20 % and 50 %, tail below head, pairs
unseen in training below seen ones.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ltds.cli.screen import Screen
from ltds.core.files import write_json
from ltds.core.runs import RunDirectory
from ltds.data.builders.bestiary import BestiaryConfig, build
from ltds.data.manifest import Manifest
from ltds.engine.config import resolve
from ltds.engine.start import create_run, resume_run

# As many images as the steps of a run can see about ten times; test images are those of the long-tailed dataset.
BALANCED = {"n_max": 150, "n_min": 150, "head": 1.0, "exclusive": 0}
NUMBERS = (
    *("acc_u", "acc", "h_oracle", "h_fixed", "auroc", "oscr"),
    *("many", "medium", "few", "seen_pairs", "unseen_pairs"),
)


def run_cell(path: Path, manifest: Manifest, held_out: str, seed: int, screen: Screen) -> dict[str, Any]:
    """The metrics of one run, trained, continued or read."""
    run = RunDirectory(path)
    if not run.done:
        screen.say(f"{path.name}")
        if run.exists:
            resume_run(run, screen)
        else:
            layer = {"data": {"root": str(manifest.root.resolve()), "held_out": held_out}, "run": {"seed": seed}}
            create_run(run, resolve(layer, dataset=manifest.name), manifest, screen)
    return run.read_metrics()["summary"]


def collect(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over runs, in percent; None where a number is undefined."""
    table: dict[str, Any] = {}
    for name in NUMBERS:
        values = [100 * s[name] for s in summaries if s[name] is not None]
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        table[name] = {"mean": float(np.mean(values)), "sd": spread, "n": len(values)} if values else None
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0", help="comma-separated")
    parser.add_argument("--out", type=Path, default=Path("runs/bestiary-proof"))
    parser.add_argument("--record", type=Path, help="JSON file to write the outcome to")
    words = parser.parse_args()
    seeds = [int(s) for s in words.seeds.split(",")]
    screen = Screen()
    tailed = build(words.out / "data-longtail", BestiaryConfig(), progress=screen)
    balanced = build(words.out / "data-balanced", BestiaryConfig(**BALANCED), progress=screen)
    oracle = [run_cell(words.out / f"oracle-{s}", balanced, "", s, screen) for s in seeds]
    agg = {
        domain: [run_cell(words.out / f"agg-{domain}-{s}", tailed, domain, s, screen) for s in seeds]
        for domain in tailed.domains
    }
    outcome = {
        "command": f"python benchmarks/bestiary.py --seeds {words.seeds}",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "commit": RunDirectory(words.out / f"oracle-{seeds[0]}").read_environment()["commit"],
        "seeds": seeds,
        "balanced": BALANCED,
        "unit": "percent; sd over runs (seeds x held-out domains)",
        "oracle": collect(oracle),
        "agg": collect([s for runs in agg.values() for s in runs]),
        "agg_by_held_out": {domain: collect(runs) for domain, runs in agg.items()},
    }
    if words.record:
        write_json(words.record, outcome)
    print(json.dumps({k: outcome[k] for k in ("oracle", "agg")}, indent=1))
    for domain, table in outcome["agg_by_held_out"].items():
        print(domain, {name: round(value["mean"], 1) for name, value in table.items() if value})


if __name__ == "__main__":
    main()
