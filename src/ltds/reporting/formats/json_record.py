"""Every number of a report as JSON: cells with the runs behind them, comparisons, ranks, commits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ltds.evaluation.significance import LEVEL
from ltds.reporting.answer import answer
from ltds.reporting.collection import Collection
from ltds.reporting.comparison import Comparison, comparisons, reference_of
from ltds.reporting.cost import cost_of
from ltds.reporting.dataset import Dataset
from ltds.reporting.glossary import METRICS
from ltds.reporting.open_names import informed_rows
from ltds.reporting.paper.matching import paper_table, printed_value
from ltds.reporting.result_table import Column, average_of, cell_of, groups_of
from ltds.reporting.run import Run


def json_text(collection: Collection, reference: str | None = None) -> str:
    """The record as JSON text; a NaN would be a bug and raises."""
    return json.dumps(report_record(collection, reference), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def report_record(collection: Collection, reference: str | None = None) -> dict[str, Any]:
    """All numbers in percent or percentage points; None: no value. Runs are identified by their path."""
    return {
        "version": 1,
        "unit": "percent",
        "interval": {"level": LEVEL, "cells": "Student's t over seeds",
                     "differences": "Student's t over held-out domains; over seeds if there is one domain"},
        "images": "test images behind a number; half_width: half of the 95 % interval that chance allows; of "
                  "ece: the most that chance adds on average",
        "test": "Wilcoxon signed-rank over (held-out, seed) pairs; p_holm corrects over the methods of one comparison "
                "that share two or more seeds with the reference, and is null for the others",
        "datasets": [_dataset(dataset, reference) for dataset in collection.datasets],
        "runs": {str(run.path): _run(run) for run in collection.runs},
        "commits": sorted({run.commit for run in collection.runs if run.commit}),
        "problems": list(collection.problems),
    }  # fmt: skip


def _dataset(dataset: Dataset, reference: str | None) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "classes": len(dataset.classes),
        "domains": list(dataset.domains),
        "held_out": list(dataset.held_out),
        "paper_table": paper_table(dataset.name),
        "reference": reference_of(dataset, reference),
        "answer": asdict(answer(dataset)),
        "cells": list(_cells(dataset)),
        "comparisons": [_comparison(table) for table in comparisons(dataset, reference)],
        "knows_open_names": list(informed_rows(dataset)),
        "costs": {label: asdict(cost_of(runs)) for label, runs in dataset.rows.items()},
    }


def _cells(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for label, runs in dataset.rows.items():
        for group in groups_of(dataset):
            for metric in METRICS.values():
                cell = cell_of(dataset, label, Column(group, metric))
                yield {
                    "method": label,
                    "held_out": group,
                    "metric": metric.key,
                    "mean": cell.mean,
                    "sd": cell.std,
                    "low": cell.low,
                    "high": cell.high,
                    "seeds": cell.seeds,
                    "images": asdict(cell.sample) if cell.sample else None,
                    "too_few_images": cell.too_few if cell.sample else None,
                    "printed": printed_value(dataset, label, Column(group, metric)),
                    "runs": [str(run.path) for run in _behind(dataset, runs, group, metric.key)],
                }


def _behind(dataset: Dataset, runs: tuple[Run, ...], group: str, metric: str) -> list[Run]:
    """The runs that a cell is the mean of: an average uses the seeds that have every held-out domain."""
    having = [run for run in runs if run.metrics.summary.get(metric) is not None]
    if group != average_of(dataset):
        return [run for run in having if run.held_out == group]
    pairs = {(run.seed, run.held_out) for run in having}
    complete = {run.seed for run in having if all((run.seed, d) in pairs for d in dataset.held_out_only)}
    return [run for run in having if run.seed in complete and run.held_out in dataset.held_out_only]


def _comparison(table: Comparison) -> dict[str, Any]:
    return {
        "metric": table.metric.key,
        "over": table.group,
        "reference": table.reference,
        "ranking": asdict(table.ranking) if table.ranking else None,
        "methods": {
            row.label: {
                **asdict(row.difference.paired),
                "pairs": row.difference.paired.pairs,
                "seeds": row.difference.seeds,
                "p_holm": row.difference.p,
                "verdict": row.difference.verdict,
            }
            for row in table.rows
            if row.difference
        },
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "method": run.method,
        "held_out": run.task.held_out,
        "seed": run.seed,
        "commit": run.commit,
        "command": run.command,
    }
