"""The last weights of finished runs that kept their best validated ones (schedule.keep), as runs of their own.

    python benchmarks/last_weights.py runs/inner --out runs/last
    python benchmarks/record.py runs/inner bsce-last=runs/last/bsce ltds-last=runs/last/ltds ...

Training does not depend on which weights are kept, so that the last checkpoint of a run with schedule.keep=best has
what keep=last would have kept: the weights after the last step, averaged if the run averages. For each run, a copy with
these weights is written to OUT/METHOD and evaluated as every run is. Test images decide nothing here: this shows what a
rule costs, it does not choose one.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from ltds.core.runs import RunDirectory
from ltds.data.manifest import Manifest
from ltds.engine.assemble import assemble
from ltds.engine.checkpoint import save_checkpoint
from ltds.engine.config import as_stored, resolve
from ltds.engine.outcome import finish
from ltds.engine.precision import recorded_precision
from ltds.engine.restore import restore
from ltds.reporting.collection import collect


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders with finished runs that kept their best weights")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    words = parser.parse_args()
    for run in collect(words.runs).runs:
        print(with_last_weights(run.directory, words.out / run.method / run.directory.path.name).path, flush=True)


if __name__ == "__main__":
    main()
