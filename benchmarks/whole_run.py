"""What a run of ltds takes besides its passes: a short run on Bestiary, with its own recipe, on one thread.

    python benchmarks/whole_run.py --data FOLDER --out results/whole_run.json    # FOLDER: a built Bestiary
    python benchmarks/whole_run.py --data FOLDER --against OTHER/src             # in turns with another commit

Nothing is imitated: while `train` runs, the parts of it are timed on the processor, each by the thread that does it.
The *passes* are the loss, the backward pass and the step of the optimizer. `loaded_step` is the passes and loading, and
`whole_run` everything from the first step to the evaluated run, both in units of the passes of the same run. A few
epochs are trained; all but the evaluation at the end is then multiplied to the epochs of the recipe. Each turn is a
process of its own.
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
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = ("passes", "loading", "validation", "saving", "evaluation")


def one_run(data: Path, epochs: int) -> dict[str, float]:
    """Seconds on the processor of the parts of a run, and of the whole."""
    import torch

    from ltds.benchmarking.cells import cells_of
    from ltds.benchmarking.grid import Grid
    from ltds.core.config import parse
    from ltds.core.processor import retain_memory
    from ltds.core.runs import RunDirectory
    from ltds.data.loading import Loader
    from ltds.data.manifest import Manifest
    from ltds.engine import loop
    from ltds.engine.assemble import assemble
    from ltds.engine.start import record

    retain_memory()
    torch.set_num_threads(1)
    spent: Counter[str] = Counter()

    def timed(place: Any, name: str, part: str) -> None:
        work: Callable[..., Any] = getattr(place, name)

        def measured(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return work(*args, **kwargs)
            finally:
                spent[part] += time.thread_time() - start

        setattr(place, name, measured)

    manifest = Manifest.read(data)
    tables = {"data": "bestiary", "methods": ["ltds"], "held_out": [manifest.domains[0]], "seeds": [0]}
    settings = {"schedule": {"epochs": epochs}, "run": {"threads": 1, "device": "cpu"}}
    with tempfile.TemporaryDirectory() as folder:
        (whole,) = cells_of(parse(Grid, tables), Path(folder), lambda _: manifest)
        (cell,) = cells_of(parse(Grid, tables | {"settings": settings}), Path(folder), lambda _: manifest)
        session = assemble(cell.config, manifest)
        run = RunDirectory(Path(folder) / "run")
        record(run, session)
        timed(session.method, "loss", "passes")
        timed(torch.Tensor, "backward", "passes")
        timed(session.optimizer, "step", "passes")
        timed(Loader, "batch", "loading")
        timed(loop, "_validate", "validation")
        timed(loop, "_save", "saving")
        timed(loop, "finish", "evaluation")
        start = time.process_time()
        loop.train(session, run)
        spent["all"] = time.process_time() - start
    times = whole.config.schedule.epochs / epochs  # all but the evaluation is repeated so often in a run of the recipe
    spent = Counter({part: seconds * (1 if part == "evaluation" else times) for part, seconds in spent.items()})
    spent["whole"] = spent.pop("all") - (times - 1) * spent["evaluation"]
    return {name: round(value, 3) for name, value in spent.items()}


def summary(turns: list[dict[str, float]]) -> dict[str, Any]:
    """Medians over the turns of ratios to the passes, and of the shares of the whole in percent."""
    middle = {
        "loaded_step": statistics.median(1 + turn["loading"] / turn["passes"] for turn in turns),
        "whole_run": statistics.median(turn["whole"] / turn["passes"] for turn in turns),
    }
    shares = {part: statistics.median(100 * turn[part] / turn["whole"] for turn in turns) for part in PARTS}
    rounded = {name: round(value, 3) for name, value in middle.items()}
    return rounded | {"percent_of_the_run": {part: round(share, 1) for part, share in shares.items()}, "turns": turns}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--against", type=Path, help="folder src of another commit")
    parser.add_argument("--out", type=Path, help="a JSON file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        print(json.dumps(one_run(words.data, words.epochs)))
        return
    sources = {"this": None, **({"other": words.against} if words.against else {})}
    turns: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
    command = [sys.executable, __file__, "--one", "--data", str(words.data), "--epochs", str(words.epochs)]
    for _ in range(words.repeats):
        for name, source in sources.items():
            code = os.environ | {"OMP_NUM_THREADS": "1"} | ({"PYTHONPATH": str(source)} if source else {})
            done = subprocess.run(command, check=True, env=code, stdout=subprocess.PIPE, text=True)
            turns[name].append(json.loads(done.stdout.splitlines()[-1]))
            print(name, turns[name][-1], flush=True)
    found: dict[str, Any] = {name: summary(made) for name, made in turns.items()}
    if words.against:
        for part in ("loading", "validation", "evaluation", "whole"):
            pairs = zip(turns["this"], turns["other"], strict=True)
            ratios = [(a[part] / a["passes"]) / (b[part] / b["passes"]) for a, b in pairs]
            found[f"{part}_ratio"] = round(statistics.median(ratios), 3)
    print(json.dumps(found, indent=1))
    if words.out:
        what = "ltds on Bestiary, seconds on the processor; this: the code of this commit, other: the one before"
        words.out.write_text(json.dumps({"what": what, "epochs": words.epochs, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
