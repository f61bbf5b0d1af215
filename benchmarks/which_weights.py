"""The last weights of finished runs compared with the best validated ones, which the runs kept (schedule.keep).

    python benchmarks/which_weights.py runs/bsce runs/ltds --work /tmp/last --out results/bestiary_weights.json

Training does not depend on which weights are kept, so that the last checkpoint of a run with schedule.keep=best has
what keep=last would have kept: the weights after the last step, averaged if the run averages. For each run a copy with
these weights is written below --work and evaluated as every run is. Test images decide nothing here: this shows
what a rule costs, it does not choose one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from ltds.core.files import write_json
from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.checkpoint import save_checkpoint
from ltds.engine.config import as_stored, resolve
from ltds.engine.outcome import finish
from ltds.engine.precision import recorded_precision
from ltds.engine.restore import restore
from ltds.reporting.collection import collect
from ltds.reporting.run import Run

METRICS = ("validation", "acc_u", "acc", "h_oracle", "few", "unseen_pairs")


def with_last_weights(run: RunDirectory, folder: Path) -> RunDirectory:
    """A copy of the run that has kept its last weights, evaluated."""
    copy = RunDirectory(shutil.copytree(run.path, folder))
    config = resolve(as_stored(run.read_config()))
    session = assemble(config, Manifest.read(Path(config.data.root)), precision=recorded_precision(run))
    state = restore(session, copy)
    with session.average.applied(session.method):
        state = replace(state, best_step=state.step)
        save_checkpoint(copy.best_checkpoint, session.method, None, state, session.identity)
    finish(session, copy)
    return copy


def numbers(run: Run) -> dict[str, Any]:
    """Validation and test numbers of the weights that were kept, in percent."""
    validation = run.directory.read_metrics()["validation"]["accuracy"]
    values = {name: run.metrics.summary[name] for name in METRICS[1:]}
    percent = {name: None if value is None else round(100 * value, 2) for name, value in values.items()}
    return {"validation": round(100 * validation, 2)} | percent


def table(rows: list[dict[str, Any]]) -> str:
    """Averages by method: what the last weights have more than the best validated ones, and in how many runs."""
    lines = ["| method | runs | " + " | ".join(METRICS) + " |", "|:--|--:|" + "--:|" * len(METRICS)]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        more = [[row["last"][name] - row["best"][name] for row in mine] for name in METRICS]
        cells = [f"{mean(values):+.1f} ({sum(value > 0 for value in values)})" for values in more]
        lines.append(f"| `{method}` | {len(mine)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders with finished runs that kept their best weights")
    parser.add_argument("--work", type=Path, help="a folder for the copies (default: they are deleted)")
    parser.add_argument("--out", type=Path, required=True, help="a file in results/")
    words = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for run in collect(words.runs).runs:
            last = with_last_weights(run.directory, (words.work or Path(temporary)) / run.directory.path.name)
            of_last = numbers(collect([last.path]).runs[0])
            names = {"method": run.method, "held_out": run.held_out, "seed": run.seed, "commit": run.commit}
            step = run.metrics.choices["model"]["step"]
            rows.append(names | {"best_step": step, "best": numbers(run), "last": of_last})
            print(rows[-1], flush=True)
    rows.sort(key=lambda row: (row["method"], row["seed"], row["held_out"]))
    write_json(words.out, {"what": str(__doc__).splitlines()[0], "runs": rows})
    print(table(rows))


if __name__ == "__main__":
    main()
