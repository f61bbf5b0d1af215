"""Our averages beside the paper's, and whether both put the methods in the same order.

    python benchmarks/against_paper.py runs/table2 --table 2 --costs results/networks.json --out FILE.md

The numbers themselves cannot be compared where the datasets differ (Bestiary is not AWA2-LTS); the order can.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ltds.core.files import write_text
from ltds.evaluation.significance import Agreement, agreement
from ltds.reporting.collection import collect
from ltds.reporting.cost import cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS
from ltds.reporting.paper.tables import METRIC_KEYS, RESULTS, by_paper_preset, paper_preset, preset_averages
from ltds.reporting.result_table import Column, TableCell, cell_of, detail_group

SHOWN = ("Acc-U", "Acc", "H")
SWAPS = 8
NOTE = (
    "A cell without ± has one seed. Cost: the training time of a run in runs of agg, the steps of all methods timed in "
    "turns (`benchmarks/networks.py`), at the size of this dataset."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--table", default="2", choices=sorted(RESULTS))
    parser.add_argument("--costs", type=Path, required=True, help="what benchmarks/networks.py --record wrote")
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    (dataset,) = collect(words.runs).datasets
    sizes = json.loads(words.costs.read_text())["rows"]
    costs = next((row["methods"] for size, row in sizes.items() if size.startswith(dataset.name)), {})
    text = "\n".join([*table(dataset, words.table, costs), "", NOTE, "", *orders(dataset, words.table)]) + "\n"
    print(text)
    if words.out:
        write_text(words.out, text)


def ours(dataset: Dataset, metric: str) -> dict[str, TableCell]:
    """Per method the average over the held-out domains."""
    column = Column(detail_group(dataset), METRICS[METRIC_KEYS[metric]])
    return {label: cell_of(dataset, label, column) for label in dataset.rows}


def table(dataset: Dataset, number: str, costs: dict[str, Any]) -> list[str]:
    theirs = {metric: preset_averages(number, metric) for metric in SHOWN}
    mine = {metric: ours(dataset, metric) for metric in SHOWN}
    names = [f"{dataset.name} {m}" for m in SHOWN] + [f"paper's table {number}: {m}" for m in SHOWN]
    lines = [f"| Method | {' | '.join(names)} | seeds | parameters | cost |", "|:--|" + "--:|" * (len(names) + 3)]
    for label in sorted(dataset.rows, key=lambda label: -(mine["Acc-U"][label].mean or 0)):
        name = paper_preset(label)
        printed = [f"{theirs[m][name]:.1f}" if name in theirs[m] else "" for m in SHOWN]
        parameters, _ = cost_of(dataset.rows[label]).texts(missing="")
        measured = costs.get(label) or costs.get(name)  # "-scratch" costs the same
        cost = f"{measured['run_in_runs_of_agg']:.1f}" if measured else ""
        facts = [str(mine["Acc"][label].seeds), parameters, cost]
        lines.append(f"| {' | '.join([label, *(mine[m][label].text(one_seed='') for m in SHOWN), *printed, *facts])} |")
    return lines


def orders(dataset: Dataset, number: str) -> list[str]:
    lines = []
    for metric in SHOWN:
        mine = by_paper_preset({label: cell.mean for label, cell in ours(dataset, metric).items()})
        theirs = preset_averages(number, metric)
        found = agreement(mine, theirs)
        lines += [_correlation(metric, found), *_swaps(found), *_missing(theirs.keys() - mine.keys())]
    return lines


def _correlation(metric: str, found: Agreement) -> str:
    if found.spearman is None or found.kendall is None:
        return f"- **{metric}**: no correlation: {len(found.methods)} methods are in both tables, or all are equal."
    return (
        f"- **{metric}**: Spearman {found.spearman:.2f}, Kendall {found.kendall:.2f} over {len(found.methods)} "
        f"methods. {len(found.swaps)} pairs stand in another order, the most different:"
    )


def _swaps(found: Agreement) -> list[str]:
    return [
        f"  - {s.better} above {s.worse} by {s.ours:.1f} here, below it by {-s.theirs:.1f} in the paper"
        for s in found.swaps[:SWAPS]
    ]


def _missing(methods: Collection[str]) -> list[str]:
    return [f"  - only in the paper: {', '.join(sorted(methods))}"] if methods else []


if __name__ == "__main__":
    main()
