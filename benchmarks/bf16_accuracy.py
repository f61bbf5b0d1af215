"""Does training in bfloat16 lose accuracy? An emulation, for machines that have no bfloat16.

    python benchmarks/bf16_accuracy.py configs/pacs-odg/features.toml --methods agg,ltds --seeds 0 \
        --beside results/pacs_odg_features.json --out runs/bf16 --record bf16.json

The runs have `run.precision=bfloat16`, but what autocast would do is computed in float32 and rounded: operands and
results of the backbone's products to bfloat16, and so their gradients. Sums inside a product are float32, as on
hardware. Runs of the same method, domain and seed in `--beside` are the float32 runs to compare with.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ltds.benchmarking.cells import cells_of
from ltds.benchmarking.grid import read_grid
from ltds.benchmarking.run_cell import run_cell
from ltds.core.files import write_json
from ltds.core.processor import retain_memory
from ltds.data.manifest import Manifest

PRODUCTS = {F.linear, torch.conv2d, F.conv2d}
METRICS = ("acc_u", "acc", "h_u_oracle", "h_u_fixed")


class Rounded(torch.autograd.Function):
    """The nearest bfloat16 as a float32, of a value and of its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.bfloat16().float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient.bfloat16().float()


class EmulatedAutocast(TorchFunctionMode):
    """In place of torch.autocast(device, torch.bfloat16)."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function not in PRODUCTS:
            return function(*args, **(kwargs or {}))
        rounded = [Rounded.apply(x) if isinstance(x, Tensor) else x for x in args]
        return Rounded.apply(function(*rounded, **(kwargs or {})))


def difference(runs: list[dict[str, Any]]) -> dict[str, float]:
    """bfloat16 minus float32, mean over the runs, in points."""
    return {m: round(100 * statistics.mean(run["bfloat16"][m] - run["float32"][m] for run in runs), 2) for m in METRICS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--methods", default="agg,ltds")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--beside", type=Path, required=True, help="recorded float32 runs")
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--record", type=Path, help="a JSON file")
    words = parser.parse_args()
    retain_memory()
    torch.set_num_threads(1)
    torch.autocast = EmulatedAutocast  # type: ignore[misc, assignment]
    given = {"methods": words.methods.split(","), "seeds": [int(seed) for seed in words.seeds.split(",")]}
    grid = read_grid(words.grid, {**given, "settings": {"run": {"precision": "bfloat16"}}})
    recorded = {
        (run["method"], run["held_out"], run["seed"]): run["summary"]
        for run in json.loads(words.beside.read_text())["runs"]
    }
    runs = []
    for cell in cells_of(grid, words.out, lambda source: Manifest.read(Path(source))):
        run_cell(cell.run.path, cell.config.to_dict(), threads=1)
        row = {"method": cell.config.method_name, "held_out": cell.held_out, "seed": cell.seed}
        pair = {"bfloat16": cell.run.read_metrics()["summary"], "float32": recorded[tuple(row.values())]}
        runs.append(row | {name: {m: round(pair[name][m], 4) for m in METRICS} for name in pair})
        print(runs[-1], flush=True)
    summary = {
        method: difference([run for run in runs if run["method"] == method]) for method in words.methods.split(",")
    }
    print("bfloat16 minus float32, points:", json.dumps(summary, indent=1))
    if words.record:
        what = "bfloat16, emulated, beside float32: points are the mean difference over held-out domains and seeds"
        write_json(words.record, {"what": what, "points": summary, "runs": runs})


if __name__ == "__main__":
    main()
