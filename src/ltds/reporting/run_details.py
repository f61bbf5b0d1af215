"""What a page says of each run, and the methods, domains and seeds that its reader can choose among."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tomli_w

from ltds.reporting.collect import Collection
from ltds.reporting.glossary import MAIN
from ltds.reporting.run import Run


@dataclass(frozen=True)
class RunDetails:
    """A run with its row's label and its dataset's place, from 1; `counts` is False for a repeat of another run."""

    run: Run
    label: str
    place: int
    counts: bool
    config: str
    facts: tuple[tuple[str, str], ...]
    numbers: tuple[float | None, ...]  # the main metrics, in percent


@dataclass(frozen=True)
class Choice:
    """What a page can be narrowed to; `key` names the attribute that the page's elements carry."""

    key: str
    name: str
    values: tuple[str, ...]


def details(collection: Collection) -> list[RunDetails]:
    """Every run, in the order of the collection."""
    rows = {id(run): (label, place) for run, label, place in _places(collection)}
    found = []
    for run in collection.runs:
        label, place = rows.get(id(run)) or _repeated(run, collection)
        shares = [run.metrics.summary.get(metric.key) for metric in MAIN]
        numbers = tuple(None if share is None else 100 * share for share in shares)
        config = tomli_w.dumps(run.config)
        found.append(RunDetails(run, label, place, id(run) in rows, config, _facts(run), numbers))
    return found


def choices(collection: Collection) -> list[Choice]:
    """The methods, held-out domains and seeds of the runs, where there is more than one."""
    datasets = collection.datasets
    methods = dict.fromkeys(label for dataset in datasets for label in dataset.rows)
    domains = dict.fromkeys(name for dataset in datasets for name in dataset.held_out)
    seeds = sorted({run.seed for run in collection.runs})
    every = (
        Choice("method", "Method", tuple(methods)),
        Choice("domain", "Held-out domain", tuple(domains)),
        Choice("seed", "Seed", tuple(map(str, seeds))),
    )
    return [choice for choice in every if len(choice.values) > 1]


def _places(collection: Collection) -> Iterator[tuple[Run, str, int]]:
    for place, dataset in enumerate(collection.datasets, 1):
        for label, runs in dataset.rows.items():
            for run in runs:
                yield run, label, place


def _repeated(run: Run, collection: Collection) -> tuple[str, int]:
    """Where the run stands that this one repeats: same images, method, settings, held-out domain and seed."""
    for other, label, place in _places(collection):
        same = (other.method, other.held_out, other.seed) == (run.method, run.held_out, run.seed)
        if same and other.task.name == run.task.name and other.settings() == run.settings():
            return label, place
    return run.method, 1


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    """What a reader asks first about a run."""
    thresholds = {name: choice["threshold"] for name, choice in run.metrics.choices.items() if "threshold" in choice}
    facts = {key: value for key, value in run.environment.items() if key != "command"}
    named = {f"threshold of {name}": value for name, value in thresholds.items()}
    every = (facts | named).items()
    return tuple((str(key), f"{value:,}" if key == "parameters" else str(value)) for key, value in every)
