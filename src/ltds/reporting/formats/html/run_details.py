"""The details of each run on the page, and the methods, domains and seeds by which the page can be filtered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tomli_w

from ltds.reporting.collection import Collection
from ltds.reporting.glossary import MAIN
from ltds.reporting.run import Run


@dataclass(frozen=True)
class RunDetails:
    """A run with the label of its row and the number of its dataset, from 1; `counts`: False for a repeated run."""

    run: Run
    label: str
    dataset: int
    counts: bool
    config: str
    facts: tuple[tuple[str, str], ...]
    numbers: tuple[float | None, ...]  # the main metrics, in percent


@dataclass(frozen=True)
class PageFilter:
    """A way to filter the page; `key` is the data attribute of the page's elements that it applies to."""

    key: str
    name: str
    values: tuple[str, ...]


def run_details(collection: Collection) -> list[RunDetails]:
    """Every run, in the order of the collection."""
    rows = {id(run): (label, dataset) for run, label, dataset in _labelled_runs(collection)}
    entries = []
    for run in collection.runs:
        label, dataset = rows.get(id(run)) or _repeated(run, collection)
        fractions = [run.metrics.summary.get(metric.key) for metric in MAIN]
        numbers = tuple(None if fraction is None else 100 * fraction for fraction in fractions)
        config = tomli_w.dumps(run.config)
        entries.append(RunDetails(run, label, dataset, id(run) in rows, config, _facts(run), numbers))
    return entries


def filters(collection: Collection) -> list[PageFilter]:
    """The methods, held-out domains and seeds of the runs, each if there is more than one."""
    datasets = collection.datasets
    methods = dict.fromkeys(label for dataset in datasets for label in dataset.rows)
    domains = dict.fromkeys(name for dataset in datasets for name in dataset.held_out)
    seeds = sorted({run.seed for run in collection.runs})
    every = (
        PageFilter("method", "Method", tuple(methods)),
        PageFilter("domain", "Held-out domain", tuple(domains)),
        PageFilter("seed", "Seed", tuple(map(str, seeds))),
    )
    return [one for one in every if len(one.values) > 1]


def _labelled_runs(collection: Collection) -> Iterator[tuple[Run, str, int]]:
    for number, dataset in enumerate(collection.datasets, 1):
        for label, runs in dataset.rows.items():
            for run in runs:
                yield run, label, number


def _repeated(run: Run, collection: Collection) -> tuple[str, int]:
    """Label and dataset of the run that this one repeats: same images, method, settings, held-out domain and seed."""
    for other, label, dataset in _labelled_runs(collection):
        same = (other.method, other.held_out, other.seed) == (run.method, run.held_out, run.seed)
        if same and other.task.name == run.task.name and other.settings() == run.settings():
            return label, dataset
    return run.method, 1


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    """Environment of the run and the thresholds of its metrics."""
    thresholds = {name: choice["threshold"] for name, choice in run.metrics.choices.items() if "threshold" in choice}
    facts = {key: value for key, value in run.environment.items() if key != "command"}
    named = {f"threshold of {name}": value for name, value in thresholds.items()}
    every = (facts | named).items()
    return tuple((str(key), f"{value:,}" if key == "parameters" else str(value)) for key, value in every)
