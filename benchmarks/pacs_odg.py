"""Runs on the four orders of PACS-ODG in one table, with the paper's table S5 below it.

    python benchmarks/pacs_odg.py runs/efficientnet-lite0 --out results/pacs_odg_efficientnet.md

The numbers of every run go to a .json of the same name: settings, commit, validation accuracy.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ltds.core.files import write_json, write_text
from ltds.reporting.collection import collect
from ltds.reporting.paper.tables import METRIC_KEYS, rows
from ltds.reporting.run import Run

ORDERS = {"cps-a": "Art", "pac-s": "Sketch", "acs-p": "Photo", "spa-c": "Cartoon"}  # target in the paper's words
METRICS = ("Acc-U", "Acc", "H-U")
KEYS = (*(METRIC_KEYS[metric] for metric in METRICS), "h_u_fixed")
HEAD = "Acc-U / Acc / H-U oracle (the paper's rule, chosen on test labels) / H-U fixed on source validation"
Numbers = dict[tuple[str, str], tuple[float | None, ...]]  # (method, target) -> the metrics, in percent


def ours(runs: list[Run]) -> tuple[Numbers, dict[str, int]]:
    """Means over seeds, in percent; and how many seeds the method with the fewest has."""
    found: dict[tuple[str, str], list[tuple[float | None, ...]]] = defaultdict(list)
    for run in runs:
        target = ORDERS[run.task.name.removeprefix("pacs-odg-")]
        summary = run.metrics.summary
        found[run.method, target].append(tuple(summary[key] for key in KEYS))
    seeds: dict[str, int] = {}
    for (method, _), values in found.items():
        seeds[method] = min(len(values), seeds.get(method, len(values)))
    return {
        key: tuple(_mean(column, 100) for column in zip(*values, strict=True)) for key, values in found.items()
    }, seeds


def _mean(values: Iterable[float | None], scale: float = 1) -> float | None:
    """None where any of them is undefined."""
    known = list(values)
    return None if None in known else scale * statistics.mean(v for v in known if v is not None)


def theirs() -> Numbers:
    printed = {(n.preset, n.held_out, n.metric): n.value for n in rows("S5")}
    keys = {(preset, target) for preset, target, _ in printed if preset}
    return {(preset, target): (*(printed.get((preset, target, m)) for m in METRICS), None) for preset, target in keys}


def spread(runs: list[Run], method: str) -> str:
    """Standard deviation over seeds of the average over the four orders, in percent."""
    by_seed: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for run in runs:
        if run.method == method:
            by_seed[run.seed].append(tuple(run.metrics.summary[key] or 0.0 for key in KEYS))
    averages = [[100 * statistics.mean(column) for column in zip(*rows, strict=True)] for rows in by_seed.values()]
    if len(averages) < 2 or any(len(rows) < len(ORDERS) for rows in by_seed.values()):
        return ""
    return " (± " + " / ".join(f"{statistics.stdev(column):.1f}" for column in zip(*averages, strict=True)) + ")"


def line(name: str, numbers: Numbers, method: str, averages: tuple[float | None, ...] | None = None) -> str:
    cells = [numbers.get((method, target)) for target in ORDERS.values()]
    if averages is None and all(cells):
        averages = tuple(_mean(values) for values in zip(*(cell for cell in cells if cell), strict=True))
    texts = [_text(values) for values in (*cells, averages)]
    return f"| {name} | {' | '.join(texts)} |"


def _text(values: tuple[float | None, ...] | None) -> str:
    return " / ".join("-" if v is None else f"{v:.1f}" for v in values) if values else ""


def table(runs: list[Run]) -> list[str]:
    mine, seeds = ours(runs)
    paper = theirs()
    heads = [f"{order.upper()} ({target})" for order, target in ORDERS.items()]
    lines = [f"| {HEAD} | {' | '.join([*heads, 'average'])} |", "|:--|" + "--:|" * (len(ORDERS) + 1)]
    for method in sorted(seeds, key=lambda name: -(_mean(v[0] for (m, _), v in mine.items() if m == name) or 0)):
        row = line(f"{method}, {seeds[method]} seed{'s' * (seeds[method] > 1)}", mine, method)
        lines.append(f"{row.removesuffix(' |')}{spread(runs, method)} |")
    for method in ("agg", "mixstyle", "daml", "ltds"):
        lines.append(line(f"*paper: {method}*", paper, method, paper.get((method, "Average"))))
    return lines


def facts(run: Run) -> dict[str, Any]:
    return {
        "method": run.method,
        "order": run.task.name.removeprefix("pacs-odg-").upper(),
        "seed": run.seed,
        "commit": run.commit,
        "validation": run.metrics.choices["model"],
        "summary": run.metrics.summary,
        "config": _settings(run.config),
    }


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """All that decides the run but where its data lie."""
    data = {name: value for name, value in config["data"].items() if name != "root"}
    data["features"] = Path(data.get("features", "")).name
    return {**config, "data": data}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="a Markdown file; the numbers go to a .json of the same name")
    words = parser.parse_args()
    runs = [run for run in collect(words.runs).runs if run.task.name.startswith("pacs-odg-")]
    if not runs:
        parser.error("no run on PACS-ODG among them")
    for run in runs:
        target = ORDERS[run.task.name.removeprefix("pacs-odg-")].casefold()
        if target != run.held_out.removesuffix("_painting"):
            parser.error(f"{run.path} holds out '{run.held_out}', but {run.task.name} is for {target}")
    twice = [name for name, count in Counter((r.method, r.task.name, r.seed) for r in runs).items() if count > 1]
    if twice:
        parser.error(f"several runs of {twice[0]}: name folders that hold each method, order and seed once")
    text = "\n".join(table(runs)) + "\n"
    print(text)
    if words.out:
        write_text(words.out, text)
        write_json(words.out.with_suffix(".json"), [facts(run) for run in runs])


if __name__ == "__main__":
    main()
